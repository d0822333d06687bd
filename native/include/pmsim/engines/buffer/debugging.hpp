#pragma once

#include <exception>
#include <span>
#include <string>
#include <vector>

#include "pmsim/core/same_bytes.hpp"
#include "pmsim/engines/buffer/buffer_manager.hpp"

namespace pmsim::engines::buffer {

/// HyMem's debugging mode (dissertation, appendix A.6), for those who use pages line by line: a tree, a
/// workload, whoever changes this buffer manager. With BufferConfig::debug_pages
///  - lines of a frame that are not here hold kForgotten instead of what the frame held before. Who reads them
///    without resident() gets nonsense, never by chance what an earlier stay of the page has left. (The paper
///    marks all lines as uninitialised memory at each fix, for valgrind, which also finds who reads what only
///    an earlier fix has asked for.) The same goes for a mini page that has been promoted: addresses that were
///    handed out before are no good.
///  - when a page is unfixed, these lines must still hold it, and those that are here and not marked as dirty
///    what PMem holds: whoever changed one did so without writable(), and the change would be lost. ("False
///    positives are possible but very unlikely.") Not where children are swizzled: their parent's swips differ.
/// What is done for it has no time, and no decision depends on it. Throws SimulationError.
inline constexpr blocks::page::Line kForgotten = [] {
  blocks::page::Line line{};
  for (std::size_t at = 0; at < line.size(); ++at)
    line[at] = static_cast<std::byte>(0xa6 ^ (37 * at));
  return line;
}();

template <memory::Memory M>
void BufferManager<M>::forget_lines(M& memory, Address first, std::uint32_t lines) {
  const memory::Detached untimed(memory);
  for (std::uint32_t line = 0; line < lines; ++line)
    memory.write(first + line * kLineBytes, kForgotten);
}

inline std::string differs_from_pmem(std::uint32_t line) {
  return "clean line " + std::to_string(line) + " differs from PMem";
}

/// What is wrong with a line of the page, or nothing. Emits micro-operations.
template <memory::Memory M>
std::string BufferManager<M>::wrong_line(M& memory, Address frame, const FrameHead& head) {
  const Address base = untagged(frame);
  const auto source = memory.template load<Address>(base + FullFrame::kPmem);
  return is_mini(frame) ? wrong_slot(memory, base, source, head) : wrong_line_of(memory, base, source, head);
}

/// Whether a line of a frame that is not dirty is that of PMem, but for the mark in the first one.
inline bool is_clean(std::uint32_t line, std::span<const std::byte> mine, std::span<const std::byte> theirs) {
  if (line != 0)
    return same_bytes(mine, theirs);
  return same_bytes(mine.first(kMarkAt), theirs.first(kMarkAt)) &&
         same_bytes(mine.subspan(kMarkAt + 8), theirs.subspan(kMarkAt + 8));
}

template <memory::Memory M>
std::string BufferManager<M>::wrong_slot(M& memory, Address base, Address source, const FrameHead& head) {
  const auto slots = memory.template load<MiniSlots>(base + MiniFrame::kSlots);
  const auto dirty = memory.template load<std::uint16_t>(base + MiniFrame::kDirty);
  const bool wrapper = (head.state.flags & kPromoted) != 0;
  for (std::uint32_t slot = 0; slot < MiniFrame::kCapacity; ++slot) {
    blocks::page::Line mine;
    memory.read(base + MiniFrame::kHeaderBytes + slot * kLineBytes, mine);
    if (wrapper || slot >= head.state.resident) {
      if (config_.debug_pages && !same_bytes(mine, kForgotten))
        return "slot " + std::to_string(slot) + " of a mini page has been written, but holds no line";
    } else if ((dirty >> slot & 1U) == 0 && head.state.children == 0) {
      const std::uint32_t line = slots.line[slot];
      blocks::page::Line theirs;
      memory.read(source + line * kLineBytes, theirs);
      if (!is_clean(line, mine, theirs))
        return differs_from_pmem(line);
    }
  }
  return "";
}

template <memory::Memory M>
std::string BufferManager<M>::wrong_line_of(M& memory, Address base, Address source, const FrameHead& head) {
  if (source == 0 || head.state.dirty != 0)
    return "";
  const bool masked = (head.state.flags & kMasked) != 0;
  std::vector<std::byte> mine(layout_.lines() * kLineBytes);
  std::vector<std::byte> theirs(mine.size());
  memory.read(data_of(base), mine);
  memory.read(source, theirs);
  for (std::uint32_t word = 0; word < layout_.lines() / 64; ++word) {
    std::uint64_t here = head.state.resident != 0 ? ~std::uint64_t{0} : 0;
    std::uint64_t dirty = 0;
    if (masked) {
      here |= memory.template load<std::uint64_t>(base + FullFrame::kResident + word * 8);
      dirty = memory.template load<std::uint64_t>(base + layout_.dirty() + word * 8);
    }
    for (std::uint32_t bit = 0; bit < 64; ++bit) {
      const std::uint32_t line = word * 64 + bit;
      const auto held = std::span(mine).subspan(line * kLineBytes, kLineBytes);
      if ((here >> bit & 1U) == 0) {
        if (config_.debug_pages && !same_bytes(held, kForgotten))
          return "line " + std::to_string(line) + " has been written, but is not here";
      } else if ((dirty >> bit & 1U) == 0 && head.state.children == 0 &&
                 !is_clean(line, held, std::span(theirs).subspan(line * kLineBytes, kLineBytes))) {
        return differs_from_pmem(line);
      }
    }
  }
  return "";
}

/// Of a page that is about to be unfixed. Not where an exception unfixes it: a run may be stopped while lines
/// are half way into their frame, and must not throw once more.
template <memory::Memory M>
void BufferManager<M>::check_use(M& memory, const Page& page) {
  if (std::uncaught_exceptions() != 0)
    return;
  const memory::Detached untimed(memory);
  const auto check = [&](Address frame) {
    const auto head = memory.template load<FrameHead>(untagged(frame));
    if (const std::string wrong = wrong_line(memory, frame, head); !wrong.empty())
      broken_invariant(("page " + std::to_string(page.id) + " is unfixed: " + wrong).c_str());
  };
  const Address behind = frame_behind(memory, page);
  check(behind);
  if (is_mini(page.frame) && !is_mini(behind))
    check(page.frame);  // the wrapper
}

}  // namespace pmsim::engines::buffer
