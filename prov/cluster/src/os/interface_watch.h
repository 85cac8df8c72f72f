// Follows this node's interfaces while links are open: their hardware addresses, MTUs, indices and addresses.
// All links of a process and network namespace share one rtnetlink socket, which the progress thread reads. A
// link compares one word per turn, and updates what it knows when that word has changed.
//
// An address that links use may get another hardware address or move to another interface. Then the watch
// notifies the other hosts of the network at once, and a few times more. Otherwise their kernels would send
// to the old hardware address for up to a minute. A process that may not write Ethernet frames makes its
// kernel ask for a neighbour instead: hosts also learn the hardware address of an IPv4 address from such a
// question.
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
  /// Returns the watch of the caller's network namespace. Returns null if the kernel does not report changes,
  /// or the thread cannot start. The log must outlive all links of the process, since one watch serves them
  /// all.
  static std::shared_ptr<InterfaceWatch> of_this_namespace(Log& log);

  explicit InterfaceWatch(Log& log) : log_(log) {}
  InterfaceWatch(const InterfaceWatch&) = delete;
  InterfaceWatch& operator=(const InterfaceWatch&) = delete;

  /// A number that changes with each change of an interface.
  std::uint32_t changes() const { return changes_.load(std::memory_order_acquire); }
  /// Returns the interface that has the address, whatever its port; nothing if none has it. If several have
  /// it, prefers the one with the index.
  std::optional<Interface> with_address(const SocketAddress& address, int index) const;
  /// Returns the addresses of all interfaces.
  std::vector<SocketAddress> addresses() const;

  /// Sends an Ethernet frame by the interface; the frame may be lost.
  void send(ConstBytes frame, int interface) const;

  /// Between these two calls, the watch announces the address each time it has moved.
  void add_user(const SocketAddress& address, int index);
  void remove_user(const SocketAddress& address);

 private:
  struct Use {
    SocketAddress address;
    unsigned users = 0;
    Interface at{};          ///< the interface that had the address last
    unsigned announced = 0;  ///< how often, since the address moved
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
  Descriptor frames_;             ///< writes Ethernet frames; empty if the process may not
  Descriptor datagrams_;          ///< sends IPv4 datagrams if frames are not allowed
  std::shared_ptr<void> client_;  ///< last, so that it stops first
};

/// What a link knows of its interface.
class WatchedInterface {
 public:
  /// `address`: the address of the link, which identifies its interface. `index`: the interface, if several
  /// have the address; 0: any.
  WatchedInterface(const SocketAddress& address, int index, Log& log);
  ~WatchedInterface();
  WatchedInterface(const WatchedInterface&) = delete;
  WatchedInterface& operator=(const WatchedInterface&) = delete;

  bool changed() const { return watch_ != nullptr && watch_->changes() != seen_; }
  /// Returns the interface as it is now; nothing while no interface has the address. changed() is false until
  /// the next change.
  std::optional<Interface> renew();
  std::vector<SocketAddress> addresses() const { return watch_->addresses(); }

  /// Asks all hosts for the hardware address of doubtful peers of frames that the kernel sends. The kernel
  /// itself trusts a known address for up to a minute, and asks all hosts only after eight more seconds of
  /// silence. This function asks after kDoubtsToAsk timeouts in a row, and each time that their number has
  /// doubled. The kernel reads the answer.
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
