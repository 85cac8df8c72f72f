#include "os/group_joiner.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "os/error_text.h"
#include "os/interfaces.h"
#include "os/udp_bursts.h"

namespace cluster::os {
namespace {

bool any_here(std::span<const SocketAddress> members) {
  const std::vector<Interface> interfaces = list_interfaces();
  if (interfaces.empty()) return true;  // the kernel does not say
  return std::any_of(members.begin(), members.end(), [&](const SocketAddress& member) {
    return std::any_of(interfaces.begin(), interfaces.end(), [&](const Interface& interface) {
      return std::any_of(interface.addresses.begin(), interface.addresses.end(),
                         [&](const SocketAddress& address) { return address.same_host(member); });
    });
  });
}

class GroupSocket final : public link::MulticastReceiver {
 public:
  GroupSocket(const std::shared_ptr<UdpPort>& port, const Environment& environment)
      : port_(port), receiver_(port, kBurst, UdpReceiver::Timestamps::yes, environment) {}

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
      // The kernel makes a copy for this host only if a member may be here: a copy costs as much as sending to another host, and the
      // sender throws away its own. Groups share the socket that they send by, so one group that needs copies is enough.
      looped_ = looped_ || members.empty() || any_here(members);
      port_->loop_groups(looped_);
      return std::make_unique<GroupSocket>(socket, environment_);
    }
    reason = error_text(error) +
             (error == EADDRINUSE ? " (another program has the group's port for itself: choose another port)"
              : error == ENOBUFS  ? " (net.ipv4.igmp_max_memberships)"
                                  : "");
    return nullptr;
  }

 private:
  std::shared_ptr<UdpPort> port_;
  int interface_;
  bool looped_ = false;  ///< some group has had members on this host, or may have
  Environment environment_;
};

}  // namespace

std::unique_ptr<link::MulticastJoiner> open_group_joiner(std::shared_ptr<UdpPort> port, int interface,
                                                         const Environment& environment) {
  return std::make_unique<GroupJoiner>(std::move(port), interface, environment);
}

}  // namespace cluster::os
