// Locks: one for data that threads rarely contend for, and one for data that one thread uses nearly always.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <thread>

namespace cluster {

/// For data that is rarely contended: one exchange to lock, a store to unlock. Held for at most one library call. Waiters yield, so that
/// on an oversubscribed machine the holder gets to run.
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
/// This TLS model takes two instructions and no call to find the place, and one byte of the memory reserved for it.
[[gnu::tls_model("initial-exec")]] inline thread_local const char thread_mark = 0;
inline ThreadId this_thread() { return &thread_mark; }

/// A lock for what one thread uses nearly always (biased locking). It costs that thread a few plain instructions. An atomic exchange
/// would drain the thread's store buffer each time, which costs as much as fifty of them.
///
/// A thread that has taken the lock kEntriesToBias times in a row owns it from then on. The owner enters by a plain store to its
/// flag `inside` and a check that it is still the owner. Any other thread takes `taken_`, as in a spin lock, and ends the ownership.
/// It then has all threads of the process execute a full fence, and waits until no owner is inside. After that fence either the
/// owner's store is visible, or the owner's check, which comes behind the store, finds that the thread owns nothing any more. Then the
/// former owner takes back its store and queues up with the others. The fence covers later holders of `taken_`, too: they only wait for
/// the flags. Only a thread itself can make itself the owner, and only while it holds `taken_`.
///
/// Each owner keeps a flag of its own. A thread can be interrupted before the store for as long as another thread takes to become the
/// owner and to enter. With one flag for both, taking back the late store would open the lock that the other one holds. A lock has
/// kOwners such flags; further threads use it as a spin lock.
///
/// Ending an ownership costs a system call and an interrupt on each processor that runs the process. Two threads that take turns
/// pay that once in kEntriesToBias times, and otherwise have a spin lock. Without a fence the lock is always a spin lock.
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
    ThreadId thread = nullptr;         ///< written once, before `owner_` shows this place for the first time
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
  Owner* inside_as_owner_ = nullptr;  ///< this and the following: written by the holder only
  unsigned run_ = 0;                  ///< entries of `last_` in a row, not as owner
  ThreadId last_ = nullptr;
  ThreadFence fence_;
};

}  // namespace cluster
