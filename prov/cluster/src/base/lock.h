// This header contains two locks. SpinLock is for data that two threads rarely use at the same time.
// BiasedLock is for data that one thread uses nearly always.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <thread>

namespace cluster {

/// A lock for data that two threads rarely use at the same time. Locking a free lock takes one atomic
/// exchange, and unlocking takes one store. A thread that has spun for a while yields the processor, so that
/// the holder can run even if there are more threads than processors.
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

/// A function that makes every thread of the process execute a full memory fence. The pointer is null if the
/// operating system cannot do this.
using ThreadFence = void (*)();

/// Identifies a running thread by the address of its thread_mark. Null stands for no thread.
using ThreadId = const void*;
/// With this TLS model, two instructions compute the address of thread_mark, without a function call. The
/// variable takes one of the bytes that the loader reserves for variables with this model.
[[gnu::tls_model("initial-exec")]] inline thread_local const char thread_mark = 0;
inline ThreadId this_thread() { return &thread_mark; }

/// A lock for data that one thread uses nearly always (biased locking). Locking costs that thread only a few
/// plain instructions. An atomic exchange would drain the thread's store buffer each time, which costs as
/// much as fifty plain instructions.
///
/// A thread becomes the owner of the lock when it has taken the lock more than kEntriesToBias times in a row.
/// To lock, the owner makes a plain store to its flag `inside`, and checks that it is still the owner. Any
/// other thread first takes `taken_`, as in a spin lock, and ends the ownership. This other thread then makes
/// all threads of the process execute a full fence, and waits until no owner's flag is set. There are two
/// cases after the fence.
/// Either the owner's store to `inside` is visible, and the other thread waits. Or the owner's check, which
/// follows its store, finds that the thread is no longer the owner. In the second case, the former owner
/// clears its flag and waits like the others. As long as no thread becomes the owner, later holders of
/// `taken_` need no further fence. They only wait until no flag is set. A thread can make only itself the
/// owner, and only while it holds `taken_`.
///
/// Each owner has its own flag. A former owner may be interrupted just before its store. Meanwhile another
/// thread may become the owner and lock. If both threads used the same flag, the former owner would later
/// clear this flag, and the lock would be free although the new owner still uses the data. A lock has kOwners
/// flags. Threads that get no flag use the lock as a spin lock.
///
/// Ending an ownership costs a system call and an interrupt on each processor that runs the process. If two
/// threads use the lock alternately, an ownership ends at most once in kEntriesToBias entries. In the
/// meantime the lock is a spin lock for both threads. Without a ThreadFence, the lock is always a spin lock.
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

  /// One thread that is, was or may become the owner.
  struct Owner {
    ThreadId thread = nullptr;         ///< written once, before `owner_` first points to this element
    std::atomic<bool> inside = false;  ///< the thread holds the lock, or checks whether it is still the owner
  };

  bool enter_as_owner() {
    Owner* const owner = owner_.load(std::memory_order_acquire);
    if (owner->thread != this_thread()) return false;
    owner->inside.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(
        std::memory_order_seq_cst);  // the thread that ends the ownership calls the matching fence_()
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

  std::array<Owner, 1 + kOwners> owners_;  ///< the first element stands for "no owner"
  std::atomic<Owner*> owner_{owners_.data()};
  std::atomic<bool> taken_{false};
  Owner* inside_as_owner_ = nullptr;  ///< only the holder of the lock writes this member and the next two
  unsigned run_ = 0;                  ///< how many times `last_` has taken `taken_` again, in a row
  ThreadId last_ = nullptr;
  ThreadFence fence_;
};

}  // namespace cluster
