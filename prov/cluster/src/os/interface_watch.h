// What becomes of this node's interfaces while links are open: their hardware addresses, MTUs, indices and addresses. One
// rtnetlink socket for all links of a process and network namespace, read on the progress thread. A link looks at one word per
// turn and renews what it keeps when that has changed.
//
// If one of the addresses that links use gets another hardware address (or moves to another interface), the other hosts of
// its network are notified at once, and some times more: their kernels would send to the old one for up to a minute. A process
// that may not write Ethernet frames has its kernel ask for a neighbour instead, from which hosts learn IPv4 addresses
// as well.
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
  /// That of the caller's network namespace; null if the kernel does not report changes, or there can be no thread. The log
  /// outlives all links of the process: one watch serves them.
  static std::shared_ptr<InterfaceWatch> of_this_namespace(Log& log);

  explicit InterfaceWatch(Log& log) : log_(log) {}
  InterfaceWatch(const InterfaceWatch&) = delete;
  InterfaceWatch& operator=(const InterfaceWatch&) = delete;

  /// Another number after each change.
  std::uint32_t changes() const { return changes_.load(std::memory_order_acquire); }
  /// The interface that has the address, whatever its port; nothing if none has. Of several it is that of the index.
  std::optional<Interface> with_address(const SocketAddress& address, int index) const;
  /// Of all interfaces.
  std::vector<SocketAddress> addresses() const;

  /// An Ethernet frame for the interface; it may be lost.
  void send(ConstBytes frame, int interface) const;

  /// From now on the address is announced when it has moved; as often removed as added.
  void add_user(const SocketAddress& address, int index);
  void remove_user(const SocketAddress& address);

 private:
  struct Use {
    SocketAddress address;
    unsigned users = 0;
    Interface at{};          ///< that which had it last
    unsigned announced = 0;  ///< times, since it has moved
    Time announce_at = kNever;
  };

  bool open();
  NextWake run();
  void note(std::uint16_t type, ConstBytes message);
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
  bool asks_for_addresses_ = false;  ///< events have been lost, and a dump of the links is under way
  Descriptor events_;
  Descriptor frames_;             ///< writes Ethernet frames; none if that is not allowed
  Descriptor datagrams_;          ///< IPv4
  std::shared_ptr<void> client_;  ///< last, so that it stops first
};

/// What a link keeps of it.
class WatchedInterface {
 public:
  /// `address`: of the link, by which its interface is known. `index`: of the interface that has it, 0: whichever.
  WatchedInterface(const SocketAddress& address, int index, Log& log);
  ~WatchedInterface();
  WatchedInterface(const WatchedInterface&) = delete;
  WatchedInterface& operator=(const WatchedInterface&) = delete;

  bool changed() const { return watch_ != nullptr && watch_->changes() != seen_; }
  /// As it is now; nothing while no interface has the address. Until the next change changed() is false.
  std::optional<Interface> renew();
  std::vector<SocketAddress> addresses() const { return watch_->addresses(); }

  /// For what the kernel sends. It trusts a hardware address that it knows for up to a minute, and asks all hosts only after eight
  /// more seconds without a sign of life. So all are asked here: after kDoubtsToAsk timeouts in a row, and each time that
  /// these have doubled. The kernel reads the answer.
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
  link::Path asked_;  ///< for the address of which last, and with how many doubts
};

}  // namespace cluster::os
