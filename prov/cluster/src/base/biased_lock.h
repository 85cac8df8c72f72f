// A lock for what one thread uses nearly always (biased locking). It costs that thread a few plain
// instructions; an atomic exchange would drain its store buffer each time, which costs as much as fifty of
// them.
//
// A thread that has taken the lock kEntriesToBias times in a row owns it from then on. The owner enters by a
// plain store to `inside_` and a check that it is still the owner. Any other thread takes `taken_`, as in a
// spin lock, ends the ownership, has a full fence executed in all threads of the process, and waits until
// the owner is not inside. After that fence either the owner's store is visible, or the owner's check, which
// comes behind it, finds that it owns nothing any more: then it takes back its store and queues up with the
// others. Later holders of `taken_` are covered by that fence, too, and only have to wait for `inside_`.
// Only the thread itself can make itself the owner, and only while it holds `taken_`.
//
// Ending an ownership costs a system call and an interrupt on each processor that runs the process. Two
// threads that take turns pay for it once in kEntriesToBias times, and otherwise have a spin lock. Without a
// fence it is never anything else.
#pragma once

#include <atomic>
#include <mutex>

namespace cluster {

/// Executes a full fence in every thread of the process; null where that cannot be had.
using ThreadFence = void (*)();

/// Names a thread among those that are alive, by a place in its own memory; null names none.
using ThreadId = const void*;
/// Two instructions: the model needs no call to find the place, and one byte of the memory kept for it.
[[gnu::tls_model("initial-exec")]] inline thread_local const char thread_mark = 0;
inline ThreadId this_thread() { return &thread_mark; }

class BiasedLock {
 public:
  static constexpr unsigned kEntriesToBias = 256;

  explicit BiasedLock(ThreadFence fence = nullptr) : fence_(fence) {}
  BiasedLock(const BiasedLock&) = delete;
  BiasedLock& operator=(const BiasedLock&) = delete;

  void lock() {
    if (!enter_as_owner()) [[unlikely]]
      lock_with_others();
  }
  bool try_lock() { return enter_as_owner() || try_lock_with_others(); }
  void unlock() {
    if (entered_as_owner_) [[likely]] {
      inside_.store(false, std::memory_order_release);
    } else {
      taken_.store(false, std::memory_order_release);
    }
  }

 private:
  static constexpr unsigned kSpinsBeforeYield = 1000;

  bool enter_as_owner() {
    const ThreadId self = this_thread();
    if (owner_.load(std::memory_order_relaxed) != self) return false;
    inside_.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(
        std::memory_order_seq_cst);  // the thread that ends the ownership supplies the other fence
    if (owner_.load(std::memory_order_acquire) == self) [[likely]] {
      entered_as_owner_ = true;
      return true;
    }
    inside_.store(false, std::memory_order_release);
    return false;
  }
  void lock_with_others();
  bool try_lock_with_others();
  bool take() { return !taken_.exchange(true, std::memory_order_acquire); }
  void end_ownership();
  void note_entry();

  std::atomic<ThreadId> owner_{nullptr};
  std::atomic<bool> inside_{false};  ///< the owner is, or is checking whether it still owns the lock
  std::atomic<bool> taken_{false};
  bool entered_as_owner_ = false;  ///< this and the following: written by the holder only
  unsigned run_ = 0;               ///< entries of `last_` in a row, not as owner
  ThreadId last_ = nullptr;
  ThreadFence fence_;
};

}  // namespace cluster
