#include "pmsim/machine/block_device.hpp"

#include <algorithm>
#include <functional>

#include "pmsim/core/random.hpp"

namespace pmsim::machine {

namespace {

/// Time to move `bytes` at `bytes_per_s`, rounded up: 1e12 ps per second.
Picoseconds transfer_time(std::uint64_t bytes, std::int64_t bytes_per_s) {
  const auto rate = static_cast<WidePicoseconds>(bytes_per_s);
  return checked_device_time(
      (static_cast<WidePicoseconds>(bytes) * static_cast<WidePicoseconds>(kSecond) + rate - 1) / rate);
}

}  // namespace

BlockDevice::BlockDevice(const BlockDeviceParams& params, Counters& counters)
    : params_(params),
      units_(static_cast<std::size_t>(params.units)),
      places_(static_cast<std::size_t>(params.queue_depth), 0),
      counters_(&counters) {}

Picoseconds BlockDevice::enter_queue(Picoseconds now) {
  return std::max(now + params_.software_latency, places_.front());
}

void BlockDevice::leave_queue(Picoseconds done) {
  std::pop_heap(places_.begin(), places_.end(), std::greater{});
  places_.back() = checked_device_time(static_cast<WidePicoseconds>(done));
  std::push_heap(places_.begin(), places_.end(), std::greater{});
}

Picoseconds BlockDevice::position(std::uint64_t address, std::uint64_t bytes) noexcept {
  const bool adjacent = address == next_address_;
  next_address_ = address + bytes;
  return adjacent ? 0 : params_.seek_latency + params_.rotation_latency;
}

void BlockDevice::pass(std::uint64_t address, std::uint64_t bytes) noexcept {
  next_address_ = address == next_address_ ? address + bytes : next_address_;
}

BlockUnit& BlockDevice::unit_of(std::uint64_t block) noexcept { return units_[mix64(block) % units_.size()]; }

Picoseconds BlockDevice::programmed(std::uint64_t block, Picoseconds at) {
  const std::uint64_t* const program = programs_.find(block);
  if (program == nullptr) {
    return 0;
  }
  BlockUnit& unit = unit_of(block);
  unit.advance(at);
  return unit.done(*program);
}

bool BlockDevice::has_left(const Cached& entry, Picoseconds at) {
  for (std::uint64_t block = entry.first; block <= entry.last; ++block) {
    BlockUnit& unit = unit_of(block);
    unit.advance(at);
    if (unit.done(entry.program) > at) {
      return false;
    }
  }
  return true;
}

Picoseconds BlockDevice::empty_front() {
  Picoseconds done = 0;
  for (std::uint64_t block = cache_.front().first; block <= cache_.front().last; ++block) {
    done = std::max(done, unit_of(block).finish(cache_.front().program));
  }
  return done;
}

void BlockDevice::leave_cache(Picoseconds now) {
  const Cached& leaves = cache_.front();
  for (std::uint64_t block = leaves.first; block <= leaves.last; ++block) {
    // One that waits to be written once more belongs to a later request.
    if (const std::uint64_t* program = programs_.find(block);
        program != nullptr && *program <= leaves.program) {
      programs_.erase(block);
    }
    unit_of(block).forget(leaves.program, now);
  }
  cached_bytes_ -= leaves.bytes;
  cache_.pop_front();
}

Picoseconds BlockDevice::read(std::uint64_t address, std::uint64_t bytes, Picoseconds now) {
  ++counters_->block_reads;
  const auto block_bytes = static_cast<std::uint64_t>(params_.block_size);
  const Picoseconds start = enter_queue(now);
  Picoseconds done = start;
  Picoseconds first = kNever;
  bool from_medium = false;
  const std::uint64_t last = (address + bytes - 1) / block_bytes;
  for (std::uint64_t block = address / block_bytes; block <= last; ++block) {
    if (!cache_.empty() && programmed(block, start) > start) {
      done = std::max(done, start + params_.write_latency);
      first = std::min(first, start + params_.write_latency);
      continue;
    }
    // A head passes over the blocks of a command one after the other, as fast as they are transferred, and is
    // nowhere else until it is past the last one.
    const bool has_head = params_.seek_latency + params_.rotation_latency > 0;
    if (from_medium && has_head) {
      continue;
    }
    const Picoseconds moved = from_medium ? 0 : position(address, bytes);
    const Picoseconds busy =
        has_head ? std::max(params_.read_latency,
                            transfer_time((last - block + 1) * block_bytes, params_.read_bandwidth))
                 : params_.read_latency;
    const Picoseconds read = unit_of(block).serve(now, start, moved + busy) - busy + params_.read_latency;
    done = std::max(done, read);
    first = std::min(first, read);
    from_medium = true;
  }
  if (!from_medium) {
    pass(address, bytes);
  }
  const std::uint64_t transferred = (last - address / block_bytes + 1) * block_bytes;
  const Picoseconds transfer = transfer_time(transferred, params_.read_bandwidth);
  link_in_free_ = std::max(link_in_free_, start) + transfer;
  // Nothing is sent before the first block has been read, and of the last one before that has been.
  done = std::max({done + transfer_time(block_bytes, params_.read_bandwidth), first + transfer, link_in_free_});
  leave_queue(done);
  return done + transfer_time(bytes, params_.copy_bandwidth);
}

Picoseconds BlockDevice::write(std::uint64_t address, std::uint64_t bytes, Picoseconds now) {
  ++counters_->block_writes;
  const auto block_bytes = static_cast<std::uint64_t>(params_.block_size);
  const std::uint64_t first = address / block_bytes;
  const std::uint64_t last = (address + bytes - 1) / block_bytes;
  const std::uint64_t transferred = (last - first + 1) * block_bytes;
  Picoseconds start = enter_queue(now + transfer_time(bytes, params_.copy_bandwidth));

  const Picoseconds transfer = transfer_time(transferred, params_.write_bandwidth);
  const bool cached = static_cast<std::int64_t>(transferred) <= params_.write_cache;
  // What the cache has to take: blocks but for those that it holds and that their units have not begun to
  // write.
  const auto needed = [&] {
    const Picoseconds arrives = std::max(link_out_free_, start) + transfer;
    std::uint64_t waiting = 0;
    for (std::uint64_t block = first; block <= last && !cache_.empty(); ++block) {
      waiting += programmed(block, arrives) == kNever ? 1 : 0;
    }
    return static_cast<std::int64_t>((last - first + 1 - waiting) * block_bytes);
  };
  std::int64_t cost = cached ? needed() : 0;
  while (cached && cached_bytes_ + cost > params_.write_cache) {
    start = std::max(start, empty_front());
    leave_cache(now);
    cost = needed();
  }
  while (!cache_.empty() && has_left(cache_.front(), start)) {
    leave_cache(now);
  }
  link_out_free_ = std::max(link_out_free_, start) + transfer;
  Picoseconds done = cached ? link_out_free_ + params_.write_latency : start;
  if (cached && cost == 0) {
    pass(address, bytes);
    leave_queue(done);
    return done;
  }
  Picoseconds moved = position(address, bytes);
  for (std::uint64_t block = first; block <= last; ++block) {
    if (!cached) {
      done = std::max(done, unit_of(block).serve(now, link_out_free_, moved + params_.program_latency));
    } else if (programmed(block, link_out_free_) == kNever) {
      continue;
    } else {
      programs_[block] = ++last_program_;
      unit_of(block).program(last_program_, link_out_free_, moved + params_.program_latency);
    }
    moved = 0;
  }
  if (cached) {
    cache_.push_back(Cached{cost, first, last, last_program_});
    cached_bytes_ += cost;
  }
  leave_queue(done);
  return done;
}

void BlockDevice::stall(Picoseconds now, Picoseconds duration) {
  for (BlockUnit& unit : units_) {
    unit.stall(now, duration);
  }
  link_in_free_ = std::max(link_in_free_, now) + duration;
  link_out_free_ = std::max(link_out_free_, now) + duration;
  paused_until_ = std::max(paused_until_, now) + duration;
}

void BlockDevice::slow(const BlockDeviceParams& original, std::int64_t percent) noexcept {
  params_.seek_latency = original.seek_latency * percent / 100;
  params_.rotation_latency = original.rotation_latency * percent / 100;
  params_.read_latency = original.read_latency * percent / 100;
  params_.write_latency = original.write_latency * percent / 100;
  params_.program_latency = original.program_latency * percent / 100;
  params_.flush_latency = original.flush_latency * percent / 100;
}

Picoseconds BlockDevice::flush(Picoseconds now) {
  ++counters_->block_flushes;
  const Picoseconds begins = std::max(enter_queue(now), paused_until_);
  Picoseconds done = begins;
  if (params_.write_cache > 0 && params_.write_cache_durable == 0) {
    for (BlockUnit& unit : units_) {
      // Until then the cache holds it, for other threads, too. What waits for room in it is not in it yet.
      done = std::max(done, unit.finish_arrived(begins));
    }
  }
  done += params_.flush_latency;
  leave_queue(done);
  return done;
}

}  // namespace pmsim::machine
