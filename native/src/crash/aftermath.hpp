#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "pmsim/crash/subject.hpp"
#include "pmsim/memory/replica.hpp"

namespace pmsim::crash {

/// Where the power failed once more: in recovery, or in the program that went on after it.
struct LaterPoint {
  std::uint64_t step = 0;       ///< of recovery, then of the program that goes on, from 1
  std::uint32_t operation = 0;  ///< 0: recovery; 1, ...: of the program that goes on
  bool acknowledged = false;    ///< the operation has returned
};

/// What can come of a memory whose power fails: recovery runs to its end on one replica, or step by step on
/// another, where the power can fail again after each step, and has an aftermath of its own.
///
///   failed -> whole (untracked): recovery runs to its end
///          -> cut   (tracked):   recovery is cut short, and so is the program that goes on after it
///             cut -> whole, cut -> ...
///
/// Invariant between calls: both replicas are as the failed memory was at the last follow().
class Aftermath {
 public:
  struct Options {
    memory::Persistence persistence = memory::Persistence::kAdr;
    /// A mutant is a program without the point, so its recovery lacks it as well: points that only recovery
    /// executes are tested by the crashes of recovery. Untracked replicas have nothing to lose.
    memory::Site disabled = memory::kNoSite;
    bool keep_log = false;  ///< of what is cut short, for counter-examples
  };

  /// `failed` must be fresh; `failures`: how often the power may fail again.
  Aftermath(memory::SimMemory& failed, const Options& options, std::uint32_t failures);
  Aftermath(const Aftermath&) = delete;
  Aftermath& operator=(const Aftermath&) = delete;

  /// Takes over what the failed memory has stored. Call after each of its steps.
  void follow();

  /// The memory whose power fails: its tracker has the legal images.
  [[nodiscard]] const memory::SimMemory& failed() const noexcept { return failed_; }

  /// Puts `image`, of the failed memory, in place for recover(). Both belong to each other: nothing in between
  /// but image_hash().
  void put(const memory::DurableImage& image);
  [[nodiscard]] std::uint64_t image_hash() const noexcept { return whole_.hash(); }
  struct Outcome {
    std::string wrong;             ///< nothing where the promise holds
    bool second_recovery = false;  ///< the mistake is the second recovery's
    bool rewrote = false;          ///< the second recovery changed bytes
  };
  /// Runs recovery there to its end, and again where asked. Forgets the image.
  [[nodiscard]] Outcome recover(const Subject& subject, bool twice);

  /// `again`: what the power would leave if it failed at `point`; `promise`: whose it would be to recover, the
  /// program that goes on, or the one before as long as recovery runs.
  using Step = std::function<void(Aftermath& again, const Subject& promise, const LaterPoint& point)>;
  /// Runs recovery on `image`, and then, if the subject can and `go_on` says so, lets the program go on. Calls
  /// `step` after each persistence step and after each acknowledgement. What it throws ends the calls, and is
  /// thrown again in the end, so that no exception travels through an algorithm.
  void recover_stepwise(const Subject& subject, const memory::DurableImage& image, bool go_on,
                        const Step& step);

  /// How often the point has been executed in recoveries of this failure.
  [[nodiscard]] std::uint64_t site_uses(memory::Site site) const;

 private:
  void follow_again();
  void forget();

  memory::SimMemory& failed_;
  bool keep_log_;
  memory::Replica whole_;
  std::optional<memory::Replica> cut_;
  std::unique_ptr<Aftermath> next_;  ///< of `cut_`
  bool cut_has_followed_ = false;    ///< since the last follow(): replicas that nobody needs are left behind
};

}  // namespace pmsim::crash
