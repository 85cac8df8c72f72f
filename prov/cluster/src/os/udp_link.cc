#include "os/udp_link.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "os/descriptor.h"
#include "os/interface_watch.h"
#include "os/neighbour_table.h"
#include "os/packet_headers.h"
#include "os/udp_bursts.h"

namespace cluster::os {
namespace {

constexpr std::size_t kReceiveBuffers = 16;
constexpr std::size_t kFrameMax = 65000;
// The smallest limit on the size of frames that an opening may announce (docs/protocol.md 2.1).
constexpr std::size_t kFrameLeast = 512;

/// Returns the size of the IP and UDP headers together.
std::size_t headers_of(SocketAddress::Family family) { return headers_size(family) - kEthernetBytes; }

class UdpLink final : public link::Link {
 public:
  UdpLink(std::shared_ptr<UdpPort> port, unsigned mtu, const Environment& environment)
      : port_(std::move(port)),
        interface_(port_->name(), 0, environment.log),
        frame_max_opened_(frame_max_within(mtu, port_->name().family())),
        frame_max_(frame_max_opened_),
        sender_(port_, environment.counters),
        neighbours_(port_->name().family(), environment.log),
        aside_(port_, environment),
        log_(environment.log),
        receiver_(port_, port_->socket(), kReceiveBuffers, UdpReceiver::Timestamps::yes, environment) {}

  const char* name() const override { return "udp"; }
  std::size_t frame_max() const override { return frame_max_; }
  bool has_carrier() const override { return interface_.has_carrier(); }
  std::size_t send_burst(std::span<const link::OutFrame> frames) override {
    interface_.ask_for_doubtful(frames);
    const std::size_t sent = sender_.send(frames);
    if (sent < frames.size() && sender_.take_no_buffer()) neighbours_.is_full(SystemClock().now());
    return sent;
  }
  std::size_t receive_burst(std::span<link::InFrame> frames) override {
    if (interface_.changed() || !aside_.idle()) [[unlikely]]
      return receive_rarely(frames);
    return receiver_.receive(frames);
  }
  std::size_t read_path_errors(std::span<link::PathError> path_errors) override {
    return port_->read_path_errors(path_errors);
  }
  std::vector<int> descriptors() const override { return with_descriptor({port_->socket()}, interface_); }
  void on_move(const MoveHandler& handler) override { moved_ = handler; }
  void thin(const link::Thinning& thinning) override { aside_.begin_or_end(port_->thin(thinning)); }
  void before_sleep() override { aside_.before_sleep(); }

 private:
  /// Does the work of receive_burst() after a change of the interface, and during a flood.
  [[gnu::noinline]] std::size_t receive_rarely(std::span<link::InFrame> frames) {
    if (interface_.changed()) renew();
    // Leaves at least half of the space for frames from the main socket.
    const std::size_t aside = aside_.receive(frames.first(frames.size() / 2));
    return aside + receiver_.receive(frames.subspan(aside));
  }
  void renew() {
    std::optional<Interface> now = interface_.renew();
    if (readdress(*port_, interface_, log_)) {
      now = interface_.renew();
      if (moved_) moved_(0, port_->name());
    }
    if (!now) return;
    frame_max_ = frame_max_renewed(frame_max_opened_, now->mtu, port_->name().family());
    port_->move_to(now->index);
  }

  std::shared_ptr<UdpPort> port_;
  WatchedInterface interface_;
  std::size_t frame_max_opened_;
  std::size_t frame_max_;
  UdpSender sender_;
  NeighbourTable neighbours_;
  AsideReceiver aside_;
  Log& log_;
  UdpReceiver receiver_;
  MoveHandler moved_;
};

bool any_here(std::span<const SocketAddress> members) {
  const std::vector<Interface> interfaces = list_interfaces();
  if (interfaces.empty()) return true;  // the kernel does not list the interfaces
  return std::ranges::any_of(members, [&](const SocketAddress& member) {
    return std::ranges::any_of(interfaces,
                               [&](const Interface& each) { return has_host(each.addresses, member); });
  });
}

class GroupSocket final : public link::MulticastReceiver {
 public:
  GroupSocket(const std::shared_ptr<UdpPort>& port, const Environment& environment)
      : port_(port), receiver_(port, port->socket(), kBurst, UdpReceiver::Timestamps::yes, environment) {}

  std::size_t receive_burst(std::span<link::InFrame> frames) override {
    return receiver_.receive_all(frames);
  }
  int descriptor() const override { return port_->socket(); }

 private:
  std::shared_ptr<UdpPort> port_;
  UdpReceiver receiver_;
};

class GroupJoiner final : public link::MulticastJoiner {
 public:
  GroupJoiner(std::shared_ptr<UdpPort> port, int interface, const Environment& environment)
      : port_(std::move(port)), interface_(interface), environment_(environment) {}

  std::unique_ptr<link::MulticastReceiver> join(const SocketAddress& group,
                                                std::span<const SocketAddress> members,
                                                std::string& reason) override {
    int error = 0;
    const std::shared_ptr<UdpPort> socket = UdpPort::open_group(group, *port_, interface_, error);
    if (socket != nullptr) {
      // If a member may be on this host, the kernel must also deliver each frame to the group on this host.
      // Each copy costs as much as sending the frame to another host. The sender receives a copy, too, and
      // discards it. All groups send through one socket. Therefore, if one group needs copies, the kernel
      // makes copies for all groups.
      looped_ = looped_ || members.empty() || any_here(members);
      port_->loop_groups(looped_);
      return std::make_unique<GroupSocket>(socket, environment_);
    }
    reason = error_text(error) + (error == EADDRINUSE
                                      ? " (another program uses the port of the multicast group exclusively: "
                                        "choose another port)"
                                  : error == ENOBUFS ? " (raise net.ipv4.igmp_max_memberships)"
                                                     : "");
    return nullptr;
  }

 private:
  std::shared_ptr<UdpPort> port_;
  int interface_;
  bool looped_ = false;  ///< a group has or had members that may be on this host
  Environment environment_;
};

}  // namespace

bool readdress(UdpPort& port, WatchedInterface& interface, Log& log) {
  const std::optional<SocketAddress> to = interface.replacement();
  if (!to) return false;
  const SocketAddress before = port.name();
  if (const int error = port.readdress(*to); error != 0) {
    log.warn(
        "the address of this endpoint has changed from %s to %s, but the endpoint cannot open a port at the "
        "new address: %s",
        before.ip_text().c_str(), to->ip_text().c_str(), error_text(error).c_str());
    return false;
  }
  interface.move_to(port.name());
  log.warn(
      "this endpoint uses the address %s in place of %s, and tells this to the peers with which it has a "
      "session",
      port.name().text().c_str(), before.text().c_str());
  return true;
}

std::vector<int> with_descriptor(std::vector<int> descriptors, const WatchedInterface& interface) {
  if (interface.descriptor() >= 0) descriptors.push_back(interface.descriptor());
  return descriptors;
}

std::size_t frame_max_within(unsigned mtu, SocketAddress::Family family) {
  const std::size_t headers = headers_of(family);
  return mtu <= headers ? 0 : std::min(mtu - headers, kFrameMax);
}

std::size_t frame_max_renewed(std::size_t opened, unsigned mtu, SocketAddress::Family family) {
  return std::min(opened, std::max(frame_max_within(mtu, family), kFrameLeast));
}

std::size_t mtu_for(std::size_t frame_max, SocketAddress::Family family) {
  return frame_max + headers_of(family);
}

std::unique_ptr<link::Link> open_udp_link(std::shared_ptr<UdpPort> port, unsigned mtu,
                                          const Environment& environment) {
  return std::make_unique<UdpLink>(std::move(port), mtu, environment);
}

std::unique_ptr<link::MulticastJoiner> open_group_joiner(std::shared_ptr<UdpPort> port, int interface,
                                                         const Environment& environment) {
  return std::make_unique<GroupJoiner>(std::move(port), interface, environment);
}

}  // namespace cluster::os
