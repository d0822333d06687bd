#include "pmsim/machine/memory_system.hpp"

#include <algorithm>

#include "pmsim/core/error.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/machine/page_table.hpp"
#include "pmsim/memory/micro_op.hpp"

namespace pmsim::machine {

namespace {

constexpr const char* kNoPmem = "a PMem access on a machine without PMem";
constexpr std::uint64_t kFirstPmemLine = memory::medium_base(memory::Medium::kPmem) / memory::kLineBytes;

[[nodiscard]] bool is_on_dram(std::uint64_t line) noexcept {
  return memory::medium_of(line * memory::kLineBytes) == memory::Medium::kDram;
}

/// Page tables are asked for far more often than data: in memory mode the DRAM cache always has them.
[[nodiscard]] constexpr bool is_page_table(std::uint64_t line) noexcept {
  return line >= kPageTables / memory::kLineBytes && line < kFirstPmemLine;
}

}  // namespace

MemorySystem::MemorySystem(const PlatformParams& params, Counters& counters, std::uint64_t seed,
                           std::uint64_t pmem_footprint)
    : params_(params),
      counters_(&counters),
      block_device_(params.block, counters),
      link_(params.controller),
      interleave_lines_(static_cast<std::uint64_t>(params.pmem.interleave) / memory::kLineBytes),
      dram_interleave_lines_(std::max<std::uint64_t>(
          1, static_cast<std::uint64_t>(params.controller.dram_interleave) / memory::kLineBytes)),
      module_count_(static_cast<std::uint64_t>(std::max<std::int64_t>(1, params.pmem.dimms))),
      channel_count_(static_cast<std::uint64_t>(params.controller.channels)),
      slices_(static_cast<std::size_t>(params.llc.slices)),
      slice_count_(slices_.size()),
      credits_(static_cast<std::size_t>(params.controller.pmem_credits)) {
  if (params.controller.memory_mode != 0) {
    dram_cache_.emplace(params, pmem_footprint / memory::kLineBytes, seed);
  }
  channels_.reserve(static_cast<std::size_t>(params.controller.channels));
  for (std::int64_t channel = 0; channel < params.controller.channels; ++channel) {
    channels_.emplace_back(params.dram, params.controller, counters);
  }
  special_ = dram_cache_ || params.pmem.dimms == 0 || link_.limits();
  modules_.reserve(static_cast<std::size_t>(params.pmem.dimms));
  victims_waiting_.resize(static_cast<std::size_t>(params.pmem.dimms));
  for (std::int64_t module = 0; module < params.pmem.dimms; ++module) {
    modules_.emplace_back(params, channels_[static_cast<std::size_t>(module)], counters,
                          mix64(seed) + static_cast<std::uint64_t>(module));
  }
}

MemorySystem::Place MemorySystem::place_in_pmem(std::uint64_t line) const noexcept {
  const std::uint64_t offset = line - kFirstPmemLine;
  const std::uint64_t stripe = interleave_lines_.quotient(offset);
  const std::uint64_t row = module_count_.quotient(stripe);
  return Place{static_cast<std::size_t>(stripe - row * module_count_.divisor()),
               offset - (stripe - row) * interleave_lines_.divisor()};
}

void MemorySystem::drain_until(PmemModule& behind, Picoseconds time) {
  while (behind.next_drain() < time) {
    last_drain_ = std::max(last_drain_, behind.next_drain());
    behind.drain();
    behind.schedule_drain();
  }
}

Picoseconds MemorySystem::catch_up_all(Picoseconds time) {
  for (std::size_t module = 0; module < modules_.size(); ++module) {
    catch_up(module, time);
  }
  return last_drain_;
}

DramChannel& MemorySystem::channel_of(std::uint64_t line, Picoseconds acts_at) {
  const std::uint64_t piece = dram_interleave_lines_.quotient(line);
  const std::size_t channel = piece - channel_count_.quotient(piece) * channel_count_.divisor();
  if (channel < modules_.size()) {
    catch_up(channel, acts_at);
  }
  return channels_[channel];
}

[[gnu::noinline]] void MemorySystem::tell(LineRequest::Operation operation, std::uint64_t line, Picoseconds now,
                                          std::uint32_t thread) {
  if (listener_ != nullptr) {
    listener_->requested(LineRequest{now, line, thread, operation}, clock_);
  }
}

Picoseconds MemorySystem::read(std::uint64_t line, Picoseconds now, Picoseconds acts_at, std::uint32_t thread,
                               Picoseconds ahead) {
  acts(acts_at);
  const bool dram = is_on_dram(line);
  if (special_) [[unlikely]] {
    now = link_.read(now, ahead);
    tell(LineRequest::Operation::kRead, line, now, thread);
    ensure(dram || !modules_.empty(), kNoPmem);
    if (dram_cache_) {
      return is_page_table(line)
                 ? channel_of(line, acts_at).read(line, now, ahead) + params_.controller.memory_mode_tag_latency
                 : read_memory_mode(line, now, acts_at);
    }
  }
  return dram ? channel_of(line, acts_at).read(line, now, ahead) : read_pmem(line, now, acts_at);
}

Picoseconds MemorySystem::read_pmem(std::uint64_t line, Picoseconds now, Picoseconds acts_at) {
  const Place place = place_in_pmem(line);
  catch_up(place.module, acts_at);
  return modules_[place.module].read(place.local_line, now);
}

Picoseconds MemorySystem::load(std::uint64_t line, Picoseconds now, Picoseconds acts_at, ReadToken token) {
  if (memory::medium_of(line * memory::kLineBytes) != memory::Medium::kPmem ||
      (special_ && (dram_cache_ || modules_.empty()))) {
    return read(line, now, acts_at, token.thread);
  }
  acts(acts_at);
  const Place place = place_in_pmem(line);
  PmemModule& module = modules_[place.module];
  const bool admitted = module.reads().admits(now);
  if (special_ && (admitted || token.load != ReadToken::kNobody)) [[unlikely]] {
    now = link_.read(now);
    tell(LineRequest::Operation::kRead, line, now, token.thread);  // who has no room to wait asks again
  }
  if (admitted) {
    catch_up(place.module, acts_at);
    return module.read_in_place(place.local_line, now);
  }
  if (token.load != ReadToken::kNobody) {
    changed_ |= module.reads().has_waiting() ? 0 : std::uint32_t{1} << place.module;
    module.reads().wait(WaitingRead{place.local_line, slice_count_.remainder(mix64(line)), now, token});
  }
  return kNever;
}

Admission MemorySystem::admit(std::size_t module) {
  const Picoseconds now = modules_[module].reads().next_admission();
  acts(now);
  catch_up(module, clock_);
  changed_ |= std::uint32_t{1} << module;
  return modules_[module].admit(now);
}

Picoseconds MemorySystem::write(std::uint64_t line, Picoseconds now, Picoseconds acts_at,
                                const WriteToken& token) {
  acts(acts_at);
  const bool dram = is_on_dram(line);
  if (special_) [[unlikely]] {
    now = link_.write(now);
    tell(LineRequest::Operation::kWrite, line, now, token.writeback ? LineRequest::kNobody : token.thread);
    ensure(dram || !modules_.empty(), kNoPmem);
    if (dram_cache_ && !is_page_table(line)) {
      return write_memory_mode(line, now, acts_at, token);
    }
  }
  if (dram) {
    return channel_of(line, acts_at).write(line, now, ahead_of_reads(now, acts_at));
  }
  const Place place = place_in_pmem(line);
  return write_pmem(place, line, now, acts_at, token);
}

void MemorySystem::access_untimed(std::uint64_t line, bool write) {
  const bool dram = is_on_dram(line);
  ensure(dram || !modules_.empty(), kNoPmem);
  if (!dram_cache_) {
    if (!dram && !write)
      read_pmem_untimed(line);
    return;
  }
  if (is_page_table(line))
    return;
  const std::uint64_t used = dram_cache_->in_use(line);
  const std::uint64_t set = dram_cache_->set_of(used);
  const bool hit = dram_cache_->held_in(set).line == used;
  if (write || !hit)
    dram_cache_->hold(set, used, write);
  if (!write && !hit)
    read_pmem_untimed(kFirstPmemLine + used);
}

void MemorySystem::wait(const WaitingLine& waiting) {
  PmemModule& module = modules_[waiting.module];
  changed_ |= module.has_waiting() ? 0 : std::uint32_t{1} << waiting.module;  // only now it becomes an agent
  module.wait(waiting);
}

Picoseconds MemorySystem::write_pmem(const Place& place, std::uint64_t line, Picoseconds now,
                                     Picoseconds acts_at, const WriteToken& token) {
  catch_up(place.module, acts_at);
  const std::size_t number = slice_count_.remainder(mix64(line));
  Slice& slice = slices_[number];
  if (slice.competing == credits_) {
    slice.behind.push_back(WaitingLine{place.local_line, place.module, number, now, token});
    return kNever;
  }
  PmemModule& module = modules_[place.module];
  if (module.has_room()) {
    module.accept(place.local_line, now);
    return now + module.write_latency();
  }
  ++slice.competing;
  wait(WaitingLine{place.local_line, place.module, number, now, token});
  return kNever;
}

void MemorySystem::drain(std::size_t module, std::vector<Grant>& grants) {
  const Picoseconds now = modules_[module].next_drain();
  acts(now);
  const Picoseconds freed = modules_[module].drain();
  const auto grant = [&](const WaitingLine& waiting) {
    const Picoseconds accepted = std::max(freed, waiting.arrived);
    modules_[waiting.module].accept(waiting.line, accepted);
    counters_->write_queue_wait_ps += accepted - waiting.arrived;
    victims_waiting_[waiting.module] -= waiting.token.controller ? 1 : 0;
    const Picoseconds acknowledged = accepted + modules_[waiting.module].write_latency();
    grants.push_back(Grant{waiting.token, waiting.module, acknowledged});
  };
  if (modules_[module].has_waiting()) {
    const WaitingLine chosen = modules_[module].take_waiting();
    grant(chosen);
    Slice& slice = slices_[chosen.slice];
    --slice.competing;
    while (!slice.behind.empty() && slice.competing < credits_) {
      const WaitingLine next = slice.behind.front();
      slice.behind.pop_front();
      // It may find room: what that module did before now, or now if its index is smaller.
      catch_up(next.module, now + (next.module < module ? 1 : 0));
      if (modules_[next.module].has_room()) {
        grant(next);
      } else {
        ++slice.competing;
        wait(next);
      }
    }
  }
  modules_[module].schedule_drain();
  changed_ |= std::uint32_t{1} << module;
}

void MemorySystem::stall(memory::Medium medium, Picoseconds now, Picoseconds duration) {
  if (medium == memory::Medium::kBlock) {
    block_device_.stall(now, duration);
    return;
  }
  if (medium == memory::Medium::kDram) {
    throw ConfigError("device: DRAM does not pause; choose pmem or block");
  }
  for (std::size_t module = 0; module < modules_.size(); ++module) {
    catch_up(module, now);
    modules_[module].stall(now, duration);
  }
}

void MemorySystem::slow(memory::Medium medium, Picoseconds now, std::int64_t percent) {
  if (percent < 1) {
    throw ConfigError("percent: a device takes at least 1 % of its time");
  }
  if (medium == memory::Medium::kBlock) {
    block_device_.slow(params_.block, percent);
    return;
  }
  if (medium == memory::Medium::kDram) {
    throw ConfigError("device: DRAM does not slow down; choose pmem or block");
  }
  for (std::size_t module = 0; module < modules_.size(); ++module) {
    catch_up(module, now);
    modules_[module].slow(params_.pmem, percent);
  }
}

Picoseconds MemorySystem::write_back_victim(const MemoryModeCache::Held& victim, Picoseconds now,
                                            Picoseconds acts_at, const WriteToken& token) {
  ++counters_->out_of_range_count;  // only reads have been measured in memory mode
  const std::uint64_t line = kFirstPmemLine + victim.line;
  return write_pmem(place_in_pmem(line), line, now, acts_at, token);
}

Picoseconds MemorySystem::make_room(const MemoryModeCache::Held& victim, Picoseconds now, Picoseconds acts_at) {
  const std::size_t module = place_in_pmem(kFirstPmemLine + victim.line).module;
  if (write_back_victim(victim, now, acts_at, WriteToken{.writeback = true, .controller = true}) != kNever)
    return now;
  return now + ++victims_waiting_[module] * params_.pmem.media_write_service;
}

Picoseconds MemorySystem::read_memory_mode(std::uint64_t line, Picoseconds now, Picoseconds acts_at) {
  const std::uint64_t used = dram_cache_->in_use(line);
  const std::uint64_t set = dram_cache_->set_of(used);
  DramChannel& channel = channel_of(set, acts_at);
  const Picoseconds checked = channel.read(set, now) + params_.controller.memory_mode_tag_latency;
  const MemoryModeCache::Held held = dram_cache_->held_in(set);
  if (held.line == used) {
    ++counters_->memory_mode_hits;
    return checked;
  }
  ++counters_->memory_mode_misses;
  const Picoseconds room = held.dirty ? make_room(held, now, acts_at) : now;
  dram_cache_->hold(set, used, false);
  // Asked for behind the read of the tag and answered when that has come: taken from then on, channel and
  // module would be idle until then.
  const Picoseconds behind = std::min(now + params_.dram.read_burst, checked);
  const Picoseconds filled = channel.write(set, behind);
  const Picoseconds read = read_pmem(kFirstPmemLine + used, behind, acts_at) + (checked - behind);
  return std::max({read, filled, room});
}

Picoseconds MemorySystem::write_memory_mode(std::uint64_t line, Picoseconds now, Picoseconds acts_at,
                                            const WriteToken& token) {
  const std::uint64_t used = dram_cache_->in_use(line);
  const std::uint64_t set = dram_cache_->set_of(used);
  const MemoryModeCache::Held held = dram_cache_->held_in(set);
  dram_cache_->hold(set, used, true);
  const Picoseconds accepted = channel_of(set, acts_at).write(set, now, ahead_of_reads(now, acts_at));
  if (held.line == used || !held.dirty)
    return accepted;
  return std::max(accepted, write_back_victim(held, now, acts_at, token));
}

}  // namespace pmsim::machine
