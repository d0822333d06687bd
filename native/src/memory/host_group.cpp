#include "pmsim/memory/host_group.hpp"

#include <utility>

#include "pmsim/core/error.hpp"

namespace pmsim::memory {

std::uint64_t HostGroup::gather(std::uint64_t offset, std::span<const std::byte> from) {
  const std::scoped_lock lock(mutex_);
  next_.push_back({offset, from});
  return ++gathered_;
}

void HostGroup::commit(std::uint64_t gathered, const BlockFile& file) {
  std::unique_lock lock(mutex_);
  ensure(gathered != 0 && gathered <= gathered_, "a commit of what nobody has gathered");
  ended_.wait(lock, [&] { return durable_ >= gathered || failed_ || !under_way_; });
  if (durable_ >= gathered)
    return;
  if (failed_)
    std::rethrow_exception(failed_);
  under_way_ = true;
  const std::vector<Piece> group = std::exchange(next_, {});
  const std::uint64_t taken = gathered_;
  lock.unlock();
  std::exception_ptr failed;
  try {
    write(group, file);
  } catch (...) {
    failed = std::current_exception();
  }
  lock.lock();
  under_way_ = false;
  ++groups_;
  failed_ = failed;
  if (!failed)
    durable_ = taken;
  ended_.notify_all();
  if (failed)
    std::rethrow_exception(failed);
}

void HostGroup::write(std::span<const Piece> group, const BlockFile& file) {
  std::vector<std::span<const std::byte>> together;
  for (std::size_t index = 0; index < group.size();) {
    const std::uint64_t begin = group[index].offset;
    together.clear();
    for (std::uint64_t end = begin; index < group.size() && group[index].offset == end; ++index) {
      together.push_back(group[index].from);
      end += group[index].from.size();
    }
    file.write(begin, together);
  }
  file.flush();
}

std::uint64_t HostGroup::groups() const {
  const std::scoped_lock lock(mutex_);
  return groups_;
}

}  // namespace pmsim::memory
