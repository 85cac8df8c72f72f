// Locks: one for data that threads rarely contend for, and one for data that one thread uses nearly always.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <thread>

namespace cluster {

/// A lock for data that threads rarely contend for. Locking takes one exchange, unlocking one store. A thread
/// holds the lock for at most one library call. Waiters yield, so that the holder runs even on an
/// oversubscribed machine.
class SpinLock {
 public:
  void lock() {
    for (unsigned spins = 0; !try_lock(); ++spins) {
      while (taken_.load(std::memory_order_relaxed)) {
        if (++spins > kSpinsBeforeYield) std::this_thread::yield();
      }
    }
  }
  bool try_lock() { return !taken_.exchange(true, std::memory_order_acquire); }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  static constexpr unsigned kSpinsBeforeYield = 1000;
  std::atomic<bool> taken_{false};
};

/// Executes a full fence in every thread of the process; null where the system has none.
using ThreadFence = void (*)();

/// Identifies a living thread by a place in its own memory; null means no thread.
using ThreadId = const void*;
/// With this TLS model, two instructions find the place, without a call. It takes one byte of the memory that
/// the loader reserves for this model.
[[gnu::tls_model("initial-exec")]] inline thread_local const char thread_mark = 0;
inline ThreadId this_thread() { return &thread_mark; }

/// A lock for data that one thread uses nearly always (biased locking). Locking costs that thread a few plain
/// instructions. An atomic exchange would drain its store buffer each time, which costs as much as fifty such
/// instructions.
///
/// A thread that has taken the lock kEntriesToBias times in a row owns it from then on. The owner enters by a
/// plain store to its flag `inside` and a check that it is still the owner. Any other thread takes `taken_`,
/// as in a spin lock, and ends the ownership. It then makes all threads of the process execute a full fence,
/// and waits until no owner is inside. After that fence, either the owner's store is visible, or the owner's
/// check, which follows the store, finds that the thread is no longer the owner. In the latter case the
/// former owner clears its flag and waits like the others. Later holders of `taken_` need no fence of their
/// own; they only wait until no flag is set. A thread can make only itself the owner, and only while it holds
/// `taken_`.
///
/// Each owner has its own flag. A former owner may be interrupted just before its store, while another thread
/// becomes the owner and enters. If both shared one flag, the former owner would clear the flag of the new
/// one and so open its lock. A lock has kOwners flags; further threads use it as a spin lock.
///
/// Ending an ownership costs a system call and an interrupt on each processor that runs the process. Two
/// threads that take turns pay this at most once in kEntriesToBias entries; otherwise the lock is a spin lock
/// for them. Without a ThreadFence, the lock is always a spin lock.
class BiasedLock {
 public:
  static constexpr unsigned kEntriesToBias = 256;
  static constexpr unsigned kOwners = 4;

  explicit BiasedLock(ThreadFence fence = nullptr) : fence_(fence) {}
  BiasedLock(const BiasedLock&) = delete;
  BiasedLock& operator=(const BiasedLock&) = delete;

  void lock() {
    if (!enter_as_owner()) [[unlikely]]
      lock_with_others();
  }
  bool try_lock() { return enter_as_owner() || try_lock_with_others(); }
  void unlock() {
    if (inside_as_owner_ != nullptr) [[likely]] {
      inside_as_owner_->inside.store(false, std::memory_order_release);
    } else {
      taken_.store(false, std::memory_order_release);
    }
  }

 private:
  static constexpr unsigned kSpinsBeforeYield = 1000;

  /// A thread that is, was or may become the owner.
  struct Owner {
    ThreadId thread = nullptr;         ///< written once, before `owner_` first points here
    std::atomic<bool> inside = false;  ///< the thread is inside, or checks whether it still owns the lock
  };

  bool enter_as_owner() {
    Owner* const owner = owner_.load(std::memory_order_acquire);
    if (owner->thread != this_thread()) return false;
    owner->inside.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(
        std::memory_order_seq_cst);  // the thread that ends the ownership supplies the other fence
    if (owner_.load(std::memory_order_acquire) == owner) [[likely]] {
      inside_as_owner_ = owner;
      return true;
    }
    owner->inside.store(false, std::memory_order_release);
    return false;
  }
  void lock_with_others();
  bool try_lock_with_others();
  bool take() { return !taken_.exchange(true, std::memory_order_acquire); }
  void end_ownership();
  bool owner_inside() const;
  void note_entry();
  Owner* place_of(ThreadId thread);

  std::array<Owner, 1 + kOwners> owners_;  ///< the first one stands for no thread
  std::atomic<Owner*> owner_{owners_.data()};
  std::atomic<bool> taken_{false};
  Owner* inside_as_owner_ = nullptr;  ///< only the holder writes this and the next two
  unsigned run_ = 0;                  ///< entries of `last_` in a row, except as owner
  ThreadId last_ = nullptr;
  ThreadFence fence_;
};

}  // namespace cluster
