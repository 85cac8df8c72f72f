#include "conformance/two_hosts.h"

#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

namespace cluster::test {
namespace {

os::Descriptor current_namespace() {
  return os::Descriptor(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
}

void enter(const os::Descriptor& name_space) {
  if (setns(name_space.number(), CLONE_NEWNET) != 0) std::abort();
}

std::string device(int host) { return "cl" + std::to_string(getpid()) + (host == 0 ? "a" : "b"); }

bool shell(const std::string& command) { return std::system((command + " 2>/dev/null").c_str()) == 0; }

bool bring_up(int host) {
  return shell("ip link set lo up") &&
         shell("ip link set " + device(host) + " up mtu " + std::to_string(TwoHosts::kMtu));
}

bool configure(int host) {
  const std::string name = device(host);
  const std::string number = std::to_string(host + 1);
  return shell("echo 1 > /proc/sys/net/ipv6/conf/" + name +
               "/keep_addr_on_down") &&  // of a cable that is pulled out
         shell("ip addr add 10.77.0." + number + "/24 dev " + name) &&
         shell("ip addr add fd77::" + number + "/64 dev " + name + " nodad");
}

/// The kernel makes an IPv6 address usable in a worker of its own: until then what is sent to it from
/// its own host leaves by the wire and is lost.
bool await_address(int host) {
  const std::string route =
      "ip -6 route show table local | grep -q 'local fd77::" + std::to_string(host + 1) + " '";
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!shell(route)) {
    if (std::chrono::steady_clock::now() > end) return false;
  }
  return true;
}

}  // namespace

std::unique_ptr<TwoHosts> TwoHosts::make(std::string& reason) {
  auto hosts = std::make_unique<TwoHosts>();
  const os::Descriptor home = current_namespace();
  for (os::Descriptor& host : hosts->hosts_) {
    if (unshare(CLONE_NEWNET) != 0) {
      reason = std::string("needs root to make network namespaces: ") + std::strerror(errno);
      return nullptr;
    }
    host = current_namespace();
    enter(home);
  }
  bool built = false;
  hosts->on(0, [&] {
    built = shell("ip link add " + device(0) + " type veth peer name " + device(1) + " netns /proc/" +
                  std::to_string(getpid()) + "/fd/" + std::to_string(hosts->hosts_[1].number()));
  });
  for (int host = 0; host < 2 && built; ++host) hosts->on(host, [&] { built = bring_up(host); });
  for (int host = 0; host < 2 && built; ++host) hosts->on(host, [&] { built = configure(host); });
  for (int host = 0; host < 2 && built; ++host) hosts->on(host, [&] { built = await_address(host); });
  if (!built) {
    reason = "needs the ip tool, veth and IPv6 to join two network namespaces";
    return nullptr;
  }
  return hosts;
}

void TwoHosts::on(int host, const std::function<void()>& action) const {
  const os::Descriptor home = current_namespace();
  enter(hosts_[host]);
  action();
  enter(home);
}

bool TwoHosts::forbid_segmentation(int host) const {
  bool done = false;
  on(host, [&] {
    const os::Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    // A device that computes no checksums cannot segment: the kernel disables both.
    ethtool_value no_checksums{ETHTOOL_STXCSUM, 0};
    ifreq request{};
    device(host).copy(request.ifr_name, sizeof request.ifr_name - 1);
    request.ifr_data = reinterpret_cast<char*>(&no_checksums);
    done = ::ioctl(socket.number(), SIOCETHTOOL, &request) == 0;
  });
  return done;
}

bool TwoHosts::plug(int host, bool in) const {
  bool done = false;
  on(host, [&] { done = shell("ip link set " + device(host) + (in ? " up" : " down")); });
  return done;
}

bool TwoHosts::set(int host, const std::string& what) const {
  bool done = false;
  on(host, [&] { done = shell("ip link set " + device(host) + " " + what); });
  return done;
}

bool TwoHosts::fill_queue(int host) const {
  bool done = false;
  on(host, [&] { done = shell("tc qdisc replace dev " + device(host) + " root bfifo limit 1"); });
  return done;
}

bool TwoHosts::ip(int host, const std::string& arguments) const {
  bool done = false;
  on(host, [&] { done = shell("ip " + arguments); });
  return done;
}

bool TwoHosts::await_neighbour(int host, const std::string& hardware_address) const {
  bool known = false;
  on(host, [&] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(3);
    do {
      known = shell("ip neigh show | grep -q 'lladdr " + hardware_address + "'");
    } while (!known && std::chrono::steady_clock::now() < end);
  });
  return known;
}

SocketAddress TwoHosts::address(int host, SocketAddress::Family family) const {
  const auto number = static_cast<std::byte>(host + 1);
  if (family == SocketAddress::Family::v4) {
    const std::array<std::byte, 4> ip{std::byte{10}, std::byte{77}, std::byte{0}, number};
    return SocketAddress::v4(ip.data(), 0);
  }
  std::array<std::byte, 16> ip{std::byte{0xfd}, std::byte{0x77}};
  ip[15] = number;
  return SocketAddress::v6(ip.data(), 0);
}

os::Interface TwoHosts::interface(int host) const {
  os::Interface result;
  on(host, [&] {
    for (const os::Interface& interface : os::list_interfaces()) {
      if (interface.name == device(host)) result = interface;
    }
  });
  return result;
}

SocketAddress loopback(SocketAddress::Family family) {
  if (family == SocketAddress::Family::v4) {
    const std::array<std::byte, 4> ip{std::byte{127}, std::byte{0}, std::byte{0}, std::byte{1}};
    return SocketAddress::v4(ip.data(), 0);
  }
  std::array<std::byte, 16> ip{};
  ip[15] = std::byte{1};
  return SocketAddress::v6(ip.data(), 0);
}

}  // namespace cluster::test
