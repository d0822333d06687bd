// What benchmarks/lackey.py traces and times: steps over memory in huge pages, between two marks.
//   chase   pointers, each in the line that the one before names     gather  random lines, drawn by the program
//   scan    words in their order                                     search  binary searches in a sorted array
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

volatile int pmsim_mark;

static uint64_t state = 88172645463325252ULL;
static uint64_t drawn(void) {  // xorshift (Marsaglia 2003)
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}
static double now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(int count, char** arguments) {
  if (count != 4)
    return 2;
  const char* what = arguments[1];
  const size_t bytes = strtoull(arguments[2], 0, 10) << 20, steps = strtoull(arguments[3], 0, 10);
  const size_t page = 2 << 20, words = bytes / 8, lines = bytes / 64;
  char* mapped = mmap(0, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    return 1;
  uint64_t* word = (uint64_t*)(((uintptr_t)mapped + page - 1) & ~(uintptr_t)(page - 1));
  madvise(word, bytes, MADV_HUGEPAGE);
  const int chase = !strcmp(what, "chase");
  // Every instruction is a line of the log: no more words than the program reads.
  const size_t apart = chase || !strcmp(what, "gather") ? 8 : 1;
  for (size_t i = 0; i < words; i += apart)
    word[i] = chase ? i / 8 : 2 * i;
  for (size_t i = lines - 1; chase && i > 0; --i) {  // one cycle through all lines (Sattolo 1986)
    const size_t other = drawn() % i;
    const uint64_t kept = word[i * 8];
    word[i * 8] = word[other * 8];
    word[other * 8] = kept;
  }
  uint64_t sum = 0;
  const double began = now_ns();
  pmsim_mark = 1;
  if (chase) {
    for (size_t step = 0; step < steps; ++step)
      sum = word[sum * 8];
  } else if (!strcmp(what, "gather")) {
    for (size_t step = 0; step < steps; ++step)
      sum += word[drawn() % lines * 8];
  } else if (!strcmp(what, "scan")) {
    // No remainder: a trace has a division as one instruction, and would be faster than the machine by that alone.
    for (size_t step = 0, at = 0; step < steps; ++step, at = at + 1 == words ? 0 : at + 1)
      sum += word[at];
  } else if (!strcmp(what, "search")) {
    for (size_t step = 0; step < steps; ++step) {
      const uint64_t key = drawn() % (2 * words);
      size_t low = 0, high = words;
      while (low < high) {
        const size_t middle = (low + high) / 2;
        if (word[middle] < key)
          low = middle + 1;
        else
          high = middle;
      }
      sum += low;
    }
  } else {
    return 2;
  }
  pmsim_mark = 2;
  printf("%.2f ns (%llu)\n", (now_ns() - began) / steps, (unsigned long long)sum);
  return 0;
}
