// Follows this node's interfaces while links are open: their hardware addresses, MTUs, indices and addresses. All links of a process and
// network namespace share one rtnetlink socket, which the progress thread reads. A link looks at one word per turn, and renews what it
// keeps when that has changed.
//
// If an address that links use gets another hardware address, or moves to another interface, the watch notifies the other hosts of its
// network at once and a few times more. Otherwise their kernels would send to the old one for up to a minute. A process that may
// not write Ethernet frames has its kernel ask for a neighbour instead: hosts learn IPv4 addresses from such a question, too.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "link/link.h"
#include "os/descriptor.h"
#include "os/interfaces.h"
#include "os/progress_thread.h"

namespace cluster::os {

class InterfaceWatch {
 public:
  /// The watch of the caller's network namespace; null if the kernel does not report changes, or the thread cannot start. The log must
  /// outlive all links of the process, since one watch serves them all.
  static std::shared_ptr<InterfaceWatch> of_this_namespace(Log& log);

  explicit InterfaceWatch(Log& log) : log_(log) {}
  InterfaceWatch(const InterfaceWatch&) = delete;
  InterfaceWatch& operator=(const InterfaceWatch&) = delete;

  /// A number that changes with each change of an interface.
  std::uint32_t changes() const { return changes_.load(std::memory_order_acquire); }
  /// The interface that has the address, whatever its port; nothing if none has it. If several have it, the one with the index.
  std::optional<Interface> with_address(const SocketAddress& address, int index) const;
  /// Of all interfaces.
  std::vector<SocketAddress> addresses() const;

  /// Sends an Ethernet frame by the interface; the frame may be lost.
  void send(ConstBytes frame, int interface) const;

  /// Between the two calls the watch announces the address when it has moved.
  void add_user(const SocketAddress& address, int index);
  void remove_user(const SocketAddress& address);

 private:
  struct Use {
    SocketAddress address;
    unsigned users = 0;
    Interface at{};          ///< the interface that had it last
    unsigned announced = 0;  ///< times, since it has moved
    Time announce_at = kNever;
  };

  bool open();
  NextWake run();
  bool look();
  const Interface* find(const SocketAddress& address, int index) const;
  std::string review(Use& use, Time now);
  void announce(const Use& use) const;
  void knock(const Use& use) const;

  Log& log_;
  const pid_t process_ = getpid();
  std::atomic<std::uint32_t> changes_{0};
  mutable std::mutex mutex_;  ///< never held while anything waits
  std::vector<Interface> interfaces_;
  std::vector<Use> uses_;
  Time next_look_{};
  InterfaceChanges kernel_;
  Descriptor frames_;             ///< writes Ethernet frames; none if that is not allowed
  Descriptor datagrams_;          ///< IPv4
  std::shared_ptr<void> client_;  ///< last, so that it stops first
};

/// What a link knows of its interface.
class WatchedInterface {
 public:
  /// `address`: of the link, by which its interface is found. `index`: of the interface that has it; 0: any.
  WatchedInterface(const SocketAddress& address, int index, Log& log);
  ~WatchedInterface();
  WatchedInterface(const WatchedInterface&) = delete;
  WatchedInterface& operator=(const WatchedInterface&) = delete;

  bool changed() const { return watch_ != nullptr && watch_->changes() != seen_; }
  /// The interface as it is now; nothing while no interface has the address. Until the next change changed() is false.
  std::optional<Interface> renew();
  std::vector<SocketAddress> addresses() const { return watch_->addresses(); }

  /// For frames that the kernel sends. The kernel trusts a known hardware address for up to a minute, and asks all hosts only after eight
  /// more seconds of silence. So this asks all hosts: after kDoubtsToAsk timeouts in a row, and each time that their number has doubled.
  /// The kernel reads the answer.
  void ask_for_doubtful(std::span<const link::OutFrame> frames) {
    for (const link::OutFrame& frame : frames) {
      if (frame.path->doubts >= kDoubtsToAsk) [[unlikely]]
        ask_for(*frame.path);
    }
  }

 private:
  static constexpr unsigned kDoubtsToAsk = 8;  ///< after 0.1 s in a session, 0.3 s before it

  void ask_for(const link::Path& path);

  SocketAddress address_;
  std::shared_ptr<InterfaceWatch> watch_;
  std::uint32_t seen_ = 0;
  Interface now_;
  link::Path asked_;  ///< the path that was asked for last, with its doubts at that time
};

}  // namespace cluster::os
