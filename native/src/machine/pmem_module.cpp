#include "pmsim/machine/pmem_module.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "pmsim/core/error.hpp"
#include "pmsim/memory/micro_op.hpp"

namespace pmsim::machine {

PmemModule::PmemModule(const PlatformParams& params, DramChannel& channel, Counters& counters,
                       std::uint64_t seed)
    : params_(params.pmem),
      block_shift_(std::countr_zero(static_cast<std::uint64_t>(params_.block_size) / memory::kLineBytes)),
      full_mask_(block_shift_ == 6 ? ~std::uint64_t{0} : (std::uint64_t{1} << (1 << block_shift_)) - 1),
      page_shift_(std::has_single_bit(static_cast<std::uint64_t>(params_.translation_page))
                      ? std::countr_zero(static_cast<std::uint64_t>(params_.translation_page))
                      : -1),
      queue_capacity_(static_cast<std::size_t>(params.controller.pmem_write_queue)),
      queue_(queue_capacity_),
      waiting_(static_cast<std::size_t>(params.llc.slices)),
      waiting_slices_((waiting_.size() + 63) / 64),
      open_(static_cast<std::size_t>(params_.write_buffer_blocks)),
      open_lines_(static_cast<std::size_t>(params_.write_buffer_blocks), OpenBlock{kNoBlock, 0}),
      read_buffer_(static_cast<std::size_t>(params_.read_buffer_blocks)),
      banks_(static_cast<std::size_t>(params_.banks)),
      reads_(static_cast<std::size_t>(params.controller.pmem_read_queue), waiting_.size(),
             static_cast<std::size_t>(params.controller.pmem_read_credits)),
      translations_(params_.translation_entries, params_.translation_entries < 8 ? 1 : 8, 1),
      channel_(&channel),
      counters_(&counters),
      random_(seed) {
  if (params_.wear_stall_writes > 0) {
    wear_shift_ =
        static_cast<int>(std::bit_width(static_cast<std::uint64_t>(params_.wear_region / params_.block_size))) -
        1;
    const std::int64_t stripes = (params_.capacity + params_.interleave - 1) / params_.interleave;
    const std::int64_t own = (stripes + params_.dimms - 1) / params_.dimms * params_.interleave;
    wear_regions_ = static_cast<std::uint64_t>(own / params_.wear_region) + 1;
    const std::uint64_t bytes = wear_regions_ * sizeof(std::uint32_t);
    try {
      wear_table_ = memory::MappedBytes(bytes);
    } catch (const ConfigError&) {
      throw HostMemoryError("pmem.wear_region: the host has no " + std::to_string(bytes >> 20) +
                            " MiB for the count of each region of a module; choose larger regions or modules "
                            "of a smaller capacity, or set pmem.wear_stall_writes to 0");
    }
    wear_ = wear_table_.as<std::uint32_t>();
  }
}

HashedLine PmemModule::page_of(std::uint64_t block) const noexcept {
  const std::uint64_t address = (block << block_shift_) * memory::kLineBytes;
  return HashedLine(page_shift_ >= 0 ? address >> page_shift_
                                     : address / static_cast<std::uint64_t>(params_.translation_page));
}

Picoseconds PmemModule::translate(HashedLine page) {
  const Cache::Place place = translations_.place_of(page);
  if (translations_.touch(place, page.line()) != nullptr) {
    return 0;
  }
  translations_.insert(place, page.line());
  ++counters_->pmem_translation_misses;
  return params_.translation_miss_latency;
}

Admission PmemModule::admit(Picoseconds place) {
  const WaitingRead taken = reads_.take_waiting(random_);
  const Picoseconds entered = std::max(place, taken.arrived);
  counters_->read_queue_wait_ps += entered - taken.arrived;
  return Admission{taken.token, entered, read_in_place(taken.line, entered)};
}

Picoseconds PmemModule::take_path(Picoseconds now) {
  if (params_.own_path == 0) {
    return channel_->take_bus(now, params_.bus_read);
  }
  if (params_.bus_read == 0) {
    return now;  // reads do not come in the order of their times: none waits for one that is later
  }
  const Picoseconds start = std::max(now, path_free_);
  path_free_ = start + params_.bus_read;
  return start;
}

Picoseconds PmemModule::read(std::uint64_t line, Picoseconds now) {
  ++counters_->pmem_read_lines;
  const Picoseconds on_bus = take_path(now);
  const Picoseconds arrived = recent_writes_.not_before(line, on_bus);
  const std::uint64_t block = line >> block_shift_;
  if (open_count_ > 0) {
    const std::size_t place = open_.find(block);
    if (place != BlockIndex::kNotFound &&
        ((open_lines_[place].lines >> (line & ((1U << block_shift_) - 1))) & 1) != 0) {
      ++counters_->pmem_buffer_read_hits;
      return arrived + params_.buffer_latency;
    }
  }
  if (const std::size_t place = read_buffer_.find(block); place != ReadBuffer::kNotFound) {
    ++counters_->pmem_buffer_read_hits;
    return std::max(arrived, read_buffer_.available(place)) + params_.buffer_latency;
  }
  ++counters_->pmem_media_read_blocks;
  Bank& bank = bank_of(block);
  const Picoseconds free = std::max(reads_free_, bank.reads_until);
  const Picoseconds start = behind_write(bank, std::max(arrived, free));
  counters_->read_queue_wait_ps += start - arrived;
  // A line that cannot be re-read yet does not keep the medium waiting.
  if (coming_.is_full()) {
    media_free_ = std::max(media_free_, coming_.take()) + params_.media_read_service;
  }
  coming_.put(on_bus);
  reads_free_ = std::max(on_bus, reads_free_) + params_.media_read_service;
  bank.reads_until = std::max(on_bus, free) + params_.bank_read_busy;
  const Picoseconds available = start + params_.media_read_latency + translate(page_of(block));
  read_buffer_.put(oldest_read_, block, available);
  oldest_read_ = oldest_read_ + 1 == read_buffer_.size() ? 0 : oldest_read_ + 1;
  return available + params_.buffer_latency;
}

/// The medium has the reads that have come until `now` to do.
void PmemModule::receive(Picoseconds now) noexcept {
  while (!coming_.is_empty() && coming_.next() <= now) {
    media_free_ = std::max(media_free_, coming_.take()) + params_.media_read_service;
  }
}

/// When it has done all reads, also those that are still on their way.
Picoseconds PmemModule::when_all_are_read() const noexcept {
  Picoseconds free = media_free_;
  coming_.for_each([&](Picoseconds arrival) { free = std::max(free, arrival) + params_.media_read_service; });
  return free;
}

void PmemModule::stall(Picoseconds now, Picoseconds duration) noexcept {
  receive(now);
  media_free_ = std::max(media_free_, now) + duration;
  reads_free_ = when_all_are_read();
  last_write_end_ = std::max(last_write_end_, now) + duration;
}

void PmemModule::slow(const PmemParams& original, std::int64_t percent) noexcept {
  params_.media_read_latency = original.media_read_latency * percent / 100;
  params_.media_read_service = original.media_read_service * percent / 100;
  params_.media_write_service = original.media_write_service * percent / 100;
  params_.write_latency = original.write_latency * percent / 100;
  params_.bank_read_busy = original.bank_read_busy * percent / 100;
  // A bank that has been writing goes on to have something to write: no division by zero.
  params_.bank_write_busy =
      original.bank_write_busy == 0 ? 0 : std::max<Picoseconds>(1, original.bank_write_busy * percent / 100);
}

void PmemModule::accept(std::uint64_t line, Picoseconds now) {
  std::size_t tail = queue_head_ + queue_size_;
  tail = tail >= queue_capacity_ ? tail - queue_capacity_ : tail;
  queue_[tail] = QueuedLine{line, now};
  ++queue_size_;
  recent_writes_.note(line, now + params_.reread_delay);
  if (next_drain_ == kNever) {
    next_drain_ = std::max(now, port_free_);
  }
}

void PmemModule::wait(const WaitingLine& waiting) {
  waiting_[waiting.slice].push_back(waiting);
  waiting_slices_[waiting.slice / 64] |= std::uint64_t{1} << waiting.slice % 64;
  ++waiting_count_;
}

WaitingLine PmemModule::take_waiting() {
  std::size_t word = turn_ / 64;
  std::uint64_t candidates = waiting_slices_[word] & ~std::uint64_t{0} << turn_ % 64;
  while (candidates == 0) {
    word = word + 1 == waiting_slices_.size() ? 0 : word + 1;
    candidates = waiting_slices_[word];
  }
  const std::size_t slice = word * 64 + static_cast<std::size_t>(std::countr_zero(candidates));
  turn_ = slice + 1 == waiting_.size() ? 0 : slice + 1;
  std::vector<WaitingLine>& lines = waiting_[slice];
  const auto chosen = static_cast<std::size_t>(random_.below(lines.size()));
  const WaitingLine taken = lines[chosen];
  lines[chosen] = lines.back();
  lines.pop_back();
  --waiting_count_;
  if (lines.empty()) {
    waiting_slices_[slice / 64] &= ~(std::uint64_t{1} << slice % 64);
  }
  return taken;
}

Picoseconds PmemModule::write_block(std::uint64_t block, bool complete, Picoseconds now) {
  ++counters_->pmem_media_write_blocks;
  if (!complete) {
    ++counters_->pmem_partial_writes;
    ++counters_->pmem_media_read_blocks;  // read-modify-write; the read overlaps the write's service time
  }
  Picoseconds start = std::max(now, last_write_end_);
  receive(start);
  if (media_free_ > start) {
    // Reads wait too: the medium serves a fixed number of them between two writes.
    start = std::min(media_free_,
                     std::max(start, last_write_end_ + params_.reads_per_write * params_.media_read_service));
  }
  Picoseconds service = params_.media_write_service;
  if (params_.wear_stall_writes > 0) {
    std::uint32_t& writes = wear_[wear_region(block)];
    if (++writes >= static_cast<std::uint32_t>(params_.wear_stall_writes)) {
      writes = 0;
      ++counters_->wear_stalls;
      service += params_.wear_stall;
    }
  }
  media_free_ = std::max(media_free_, start) + service;
  reads_free_ = when_all_are_read();
  last_write_end_ = start + service;
  if (params_.bank_write_busy > 0) {
    Bank& bank = bank_of(block);
    bank.begins = bank.ends <= start ? start : bank.begins;
    bank.ends = std::max(bank.ends, start) + params_.bank_write_busy;
  }
  return start;
}

void PmemModule::write_out_idle(Picoseconds now) {
  // The medium has caught up and is idle: complete blocks leave, oldest first.
  if (complete_head_ != complete_.size()) {
    receive(now);
  }
  while (complete_head_ != complete_.size()) {
    const auto [block, completed] = complete_[complete_head_];
    const Picoseconds start = std::max({media_free_, last_write_end_, completed});
    if (start >= now) {
      break;
    }
    ++complete_head_;
    const std::size_t place = open_.find(block);
    if (place != BlockIndex::kNotFound && open_lines_[place].lines == full_mask_) {
      write_block(block, true, start);
      open_.erase(block);
      open_lines_[place] = OpenBlock{kNoBlock, 0};
      --open_count_;
    }
  }
  if (complete_head_ == complete_.size()) {
    complete_.clear();
    complete_head_ = 0;
  }
}

void PmemModule::note_complete(std::uint64_t block, Picoseconds now) {
  // A medium that is never idle takes none from here: those that have left for want of room pile up.
  static constexpr std::size_t kMostKept = std::size_t{1} << 19;
  if (complete_.size() >= kMostKept + open_lines_.size()) [[unlikely]] {
    forget_those_that_left();
  }
  complete_.push_back(CompleteBlock{block, now});
}

[[gnu::noinline, gnu::cold]] void PmemModule::forget_those_that_left() {
  std::vector<bool> kept(open_lines_.size(), false);
  std::size_t number = 0;
  std::erase_if(complete_, [&](const CompleteBlock& complete) {
    const std::size_t place = number++ < complete_head_ ? BlockIndex::kNotFound : open_.find(complete.block);
    const bool stays = place != BlockIndex::kNotFound && open_lines_[place].lines == full_mask_ && !kept[place];
    if (stays) {
      kept[place] = true;
    }
    return !stays;
  });
  complete_head_ = 0;
}

Picoseconds PmemModule::combine(std::uint64_t line, Picoseconds now) {
  const std::uint64_t block = line >> block_shift_;
  const std::uint64_t bit = std::uint64_t{1} << (line & ((1U << block_shift_) - 1));
  write_out_idle(now);
  if (const std::size_t place = open_.find(block); place != BlockIndex::kNotFound) {
    OpenBlock& open = open_lines_[place];
    if (open.lines != full_mask_ && (open.lines | bit) == full_mask_) {
      note_complete(block, now);
    }
    open.lines |= bit;
    return now;
  }
  // Places are used in a circle, so the next one holds the block that has been there longest; idle write-outs
  // leave holes, which are used up first.
  Picoseconds start = now;
  if (open_count_ == open_lines_.size()) {
    const OpenBlock victim = open_lines_[next_place_];
    start = write_block(victim.block, victim.lines == full_mask_, now);
    open_.erase(victim.block);
    --open_count_;
  } else {
    while (open_lines_[next_place_].block != kNoBlock) {
      next_place_ = next_place_ + 1 == open_lines_.size() ? 0 : next_place_ + 1;
    }
  }
  if (wear_) {
    host_prefetch(&wear_[wear_region(block)]);  // for when the block leaves
  }
  open_lines_[next_place_] = OpenBlock{block, bit};
  open_.insert(block, next_place_);
  ++open_count_;
  if (bit == full_mask_) {
    note_complete(block, now);
  }
  next_place_ = next_place_ + 1 == open_lines_.size() ? 0 : next_place_ + 1;
  return start;
}

Picoseconds PmemModule::drain() {
  const Picoseconds now = next_drain_;
  const QueuedLine next = queue_[queue_head_];
  queue_head_ = queue_head_ + 1 == queue_capacity_ ? 0 : queue_head_ + 1;
  --queue_size_;
  ++counters_->pmem_write_lines;
  if (params_.own_path == 0) {
    channel_->yield_bus_to_write(now, params_.bus_write);
  }
  const Picoseconds left = combine(next.line, now);
  port_free_ = std::max(now, left) + params_.bus_write;
  return std::max(now, left);
}

void PmemModule::schedule_drain() noexcept {
  next_drain_ = queue_size_ == 0 ? kNever : std::max(port_free_, queue_[queue_head_].arrived);
}

}  // namespace pmsim::machine
