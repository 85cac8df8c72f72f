// While links are open, the watch follows this node's interfaces: their hardware addresses, MTUs, indices and
// IP addresses. All links of a process in one network namespace share one watch, which runs on the progress
// thread. The watch counts the changes. Before a link receives frames, the link compares this count with the
// count that it saw last. If the two differ, the link takes the current state of its interface from the
// watch.
//
// An address that links use may get another hardware address or move to another interface. In this case the
// watch announces the new hardware address to the other hosts of the network, at once and a few more times.
// Otherwise their kernels would send to the old hardware address for up to a minute. A process without
// permission to write Ethernet frames makes its kernel ask for the hardware address of another host. From
// such a question, hosts also learn the hardware address that now belongs to the sender's IPv4 address.
//
// An administrator or a DHCP client may remove an address that links use. The watch then wakes the threads
// that sleep on these links, and the links continue with another address of the interface. Once an interface
// has the first address of a link again, the link returns to this address.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <bit>
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
#include "os/wait_set.h"

namespace cluster::os {

class InterfaceWatch {
 public:
  /// Returns the watch of the caller's network namespace. Returns null if the kernel does not report changes,
  /// or if the progress thread cannot start. `log` must outlive all links of the process: the watch keeps the
  /// `log` of the first link, and later links of the namespace share this watch.
  static std::shared_ptr<InterfaceWatch> of_this_namespace(Log& log);

  explicit InterfaceWatch(Log& log) : log_(log) {}
  ~InterfaceWatch();
  InterfaceWatch(const InterfaceWatch&) = delete;
  InterfaceWatch& operator=(const InterfaceWatch&) = delete;

  /// Returns the number of changes of interfaces so far.
  std::uint32_t changes() const { return changes_.load(std::memory_order_acquire); }
  /// Returns the interface that has the IP address of `address`, or nullopt if none has it. If several have
  /// it, prefers the interface with this index.
  std::optional<Interface> with_address(const SocketAddress& address, int index) const;
  /// Returns the interface with this index, or nullopt if there is none.
  std::optional<Interface> with_index(int index) const;
  /// Returns the addresses of all interfaces.
  std::vector<SocketAddress> addresses() const;

  /// Sends an Ethernet frame through the interface with this index. The frame may be lost.
  void send(ConstBytes frame, int interface) const;

  /// From add_user() until remove_user(), the watch announces the address each time the address moves, and
  /// when it appears. The watch raises `lost` if no interface has the address after a change of the
  /// interfaces.
  void add_user(const SocketAddress& address, int index, Signal& lost);
  void remove_user(const SocketAddress& address, Signal& lost);

 private:
  struct Use {
    SocketAddress address;
    std::vector<Signal*> users;
    Interface at{};          ///< the interface that had the address last; index 0 if none has had it
    unsigned announced = 0;  ///< number of announcements since the address moved
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
  mutable std::mutex mutex_;  ///< no thread waits for anything while it holds this mutex
  std::vector<Interface> interfaces_;
  std::vector<Use> uses_;
  Time next_look_{};
  InterfaceChanges kernel_;
  Descriptor frames_;     ///< writes Ethernet frames; empty if the process has no permission
  Descriptor datagrams_;  ///< sends IPv4 datagrams if frames are not allowed
  std::shared_ptr<void> client_;
};

/// Follows the interface of one link.
class WatchedInterface {
 public:
  /// `address`: the address of the link. `index`: the index of the interface to prefer if several have the
  /// address, or 0 for any.
  WatchedInterface(const SocketAddress& address, int index, Log& log);
  ~WatchedInterface();
  WatchedInterface(const WatchedInterface&) = delete;
  WatchedInterface& operator=(const WatchedInterface&) = delete;

  bool changed() const { return watch_ != nullptr && watch_->changes() != seen_; }
  /// Returns the current state of the interface, or nullopt while no interface has the address. After the
  /// call, changed() is false until the next change.
  std::optional<Interface> renew();
  /// Returns the address that should replace the link's current address. If an interface has the link's first
  /// address again, returns this first address. Otherwise, if no interface has the current address, returns
  /// another address of the interface that had the current address. Returns nullopt if the link keeps its
  /// current address, or if the interface has no other address of the same family and scope.
  std::optional<SocketAddress> replacement() const;
  /// Must be called after the address of the link was replaced.
  void move_to(const SocketAddress& address);
  /// Returns the descriptor that becomes readable when the link may need another address, and stays readable
  /// until renew(). Returns -1 if there is none.
  int descriptor() const { return lost_ != nullptr ? lost_->descriptor() : -1; }
  std::vector<SocketAddress> addresses() const { return watch_->addresses(); }
  /// Returns false if renew() found the interface down or without a carrier.
  bool has_carrier() const { return carrier_; }

  /// Asks all hosts of the network for the hardware addresses of peers in this network that do not answer.
  /// The kernel itself trusts a known hardware address for up to a minute, and asks all hosts only after
  /// eight more seconds of silence. This function asks after kDoubtsToAsk timeouts in a row, and again each
  /// time the number of timeouts doubles. The kernel reads the answer. Without permission to write Ethernet
  /// frames, this function has no effect.
  void ask_for_doubtful(std::span<const link::OutFrame> frames) {
    for (const link::OutFrame& frame : frames) {
      if (frame.path->doubts >= kDoubtsToAsk) [[unlikely]]
        ask_for(*frame.path);
    }
  }
  /// Returns true if the address belongs to the network of the link's address, so no router is between them.
  bool in_network(const SocketAddress& address) const;
  /// Returns true if ask_for_doubtful() asks all hosts at the path's current number of timeouts.
  static bool asks_all(const link::Path& path) {
    return path.doubts >= kDoubtsToAsk && std::has_single_bit(path.doubts);
  }

 private:
  /// A path without answers has this many timeouts after about 0.1 s in a session, and after 0.3 s while no
  /// session is open.
  static constexpr unsigned kDoubtsToAsk = 8;

  void ask_for(const link::Path& path);

  const SocketAddress name_;  ///< the first address of the link
  SocketAddress address_;
  std::unique_ptr<Signal> lost_;
  std::shared_ptr<InterfaceWatch> watch_;
  std::uint32_t seen_ = 0;
  Interface now_;
  bool carrier_ = true;
  link::Path asked_;  ///< the last path that ask_for() handled, as it was then
};

}  // namespace cluster::os
