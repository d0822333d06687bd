#include "pmsim/machine/block_device.hpp"

#include <algorithm>

#include "pmsim/core/error.hpp"
#include "pmsim/core/random.hpp"

namespace pmsim::machine {

namespace {

__extension__ using Wide = unsigned __int128;

/// A device that is as slow as its parameters may say comes to the end of virtual time. Below this, what it
/// adds next is still a time, too.
constexpr Picoseconds kLongest = kNever / 8;

[[noreturn, gnu::noinline, gnu::cold]] void refuse() {
  throw ConfigError(
      "block: the device works for more than 13 days of virtual time; choose higher bandwidths, shorter "
      "latencies or fewer operations");
}

Picoseconds checked(Wide time) {
  if (time > static_cast<Wide>(kLongest)) [[unlikely]] {
    refuse();
  }
  return static_cast<Picoseconds>(time);
}

/// Time to move `bytes` at `bytes_per_s`, rounded up: 1e12 ps per second.
Picoseconds transfer_time(std::uint64_t bytes, std::int64_t bytes_per_s) {
  const Wide rate = static_cast<Wide>(bytes_per_s);
  return checked((static_cast<Wide>(bytes) * static_cast<Wide>(kSecond) + rate - 1) / rate);
}

}  // namespace

BlockDevice::BlockDevice(const BlockDeviceParams& params, Counters& counters)
    : params_(params),
      units_(static_cast<std::size_t>(params.units), 0),
      commands_(static_cast<std::size_t>(params.queue_depth), 0),
      counters_(&counters) {}

Picoseconds BlockDevice::enter_queue(Picoseconds now) {
  return std::max(now + params_.software_latency, commands_[next_command_]);
}

void BlockDevice::leave_queue(Picoseconds done) {
  commands_[next_command_] = checked(static_cast<Wide>(done));
  next_command_ = next_command_ + 1 == commands_.size() ? 0 : next_command_ + 1;
}

Picoseconds BlockDevice::position(std::uint64_t address, std::uint64_t bytes) {
  const bool adjacent = address == next_address_;
  next_address_ = address + bytes;
  return adjacent ? 0 : params_.seek_latency + params_.rotation_latency;
}

Picoseconds BlockDevice::occupy_unit(std::uint64_t block, Picoseconds now, Picoseconds duration) {
  Picoseconds& unit = units_[mix64(block) % units_.size()];
  unit = checked(static_cast<Wide>(std::max(unit, now) + duration));
  return unit;
}

bool BlockDevice::waits(std::uint64_t block, Picoseconds at) noexcept {
  const Picoseconds* const begins = waiting_.find(block);
  return begins != nullptr && *begins > at;
}

void BlockDevice::leave_cache() {
  const Cached& leaves = cache_.front();
  for (std::uint64_t block = leaves.first; block <= leaves.last; ++block) {
    // One that waits to be written once more belongs to a later request.
    if (const Picoseconds* begins = waiting_.find(block); begins != nullptr && *begins <= leaves.written) {
      waiting_.erase(block);
    }
  }
  cached_bytes_ -= leaves.bytes;
  cache_.pop_front();
}

Picoseconds BlockDevice::read(std::uint64_t address, std::uint64_t bytes, Picoseconds now) {
  ++counters_->block_reads;
  const auto block_bytes = static_cast<std::uint64_t>(params_.block_size);
  const Picoseconds start = enter_queue(now);
  Picoseconds moved = position(address, bytes);
  Picoseconds done = start;
  const std::uint64_t last = (address + bytes - 1) / block_bytes;
  for (std::uint64_t block = address / block_bytes; block <= last; ++block) {
    done = std::max(done, occupy_unit(block, start, moved + params_.read_latency));
    moved = 0;
  }
  const std::uint64_t transferred = (last - address / block_bytes + 1) * block_bytes;
  link_in_free_ = std::max(link_in_free_, start) + transfer_time(transferred, params_.read_bandwidth);
  // Nothing of the last block is sent before it has been read; the others are sent meanwhile.
  done = std::max(done + transfer_time(block_bytes, params_.read_bandwidth), link_in_free_);
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
  // What the cache has to take: blocks that it does not hold already, still to be written.
  const auto needed = [&] {
    const Picoseconds arrives = std::max(link_out_free_, start) + transfer;
    std::uint64_t waiting = 0;
    for (std::uint64_t block = first; block <= last && !waiting_.empty(); ++block) {
      waiting += waits(block, arrives) ? 1 : 0;
    }
    return static_cast<std::int64_t>((last - first + 1 - waiting) * block_bytes);
  };
  std::int64_t cost = cached ? needed() : 0;
  while (cached && cached_bytes_ + cost > params_.write_cache) {
    start = std::max(start, cache_.front().written);
    leave_cache();
    cost = needed();
  }
  while (!cache_.empty() && cache_.front().written <= start) {
    leave_cache();
  }
  link_out_free_ = std::max(link_out_free_, start) + transfer;
  if (cached && cost == 0) {
    next_address_ = address == next_address_ ? address + bytes : next_address_;
    leave_queue(link_out_free_ + params_.write_latency);
    return link_out_free_ + params_.write_latency;
  }
  Picoseconds moved = position(address, bytes);
  Picoseconds written = start;
  for (std::uint64_t block = first; block <= last; ++block) {
    if (cached && waits(block, link_out_free_)) {
      continue;
    }
    const Picoseconds ends = occupy_unit(block, link_out_free_, moved + params_.program_latency);
    written = std::max(written, ends);
    if (cached) {
      waiting_[block] = ends - moved - params_.program_latency;
    }
    moved = 0;
  }
  Picoseconds done = written;
  if (cached) {
    // The cache empties in order: what was put in earlier has left before.
    written = std::max(written, cache_.empty() ? written : cache_.back().written);
    cache_.push_back(Cached{written, cost, first, last});
    cached_bytes_ += cost;
    done = link_out_free_ + params_.write_latency;
  }
  leave_queue(done);
  return done;
}

void BlockDevice::stall(Picoseconds now, Picoseconds duration) noexcept {
  for (Picoseconds& unit : units_) {
    unit = std::max(unit, now) + duration;
  }
  link_in_free_ = std::max(link_in_free_, now) + duration;
  link_out_free_ = std::max(link_out_free_, now) + duration;
  paused_until_ = std::max(paused_until_, now) + duration;
  for (Cached& cached : cache_) {
    cached.written += cached.written > now ? duration : 0;
  }
  waiting_.for_each([&](Picoseconds& begins) { begins += begins > now ? duration : 0; });
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
  Picoseconds done = std::max(enter_queue(now), paused_until_);
  if (!cache_.empty() && params_.write_cache_durable == 0) {
    done = std::max(done, cache_.back().written);  // until then the cache holds it, for other threads, too
  }
  done += params_.flush_latency;
  leave_queue(done);
  return done;
}

}  // namespace pmsim::machine
