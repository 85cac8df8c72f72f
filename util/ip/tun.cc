#include "tun.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace cluster::ip {
namespace {

constexpr char kDevice[] = "/dev/net/tun";

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

[[noreturn]] void refuse_device() {
  switch (errno) {
    case ENOENT:
    case ENODEV:
    case ENXIO:
      fail(std::string("there are no TUN devices here (modprobe tun; in a container: --device ") + kDevice +
           "): " + kDevice);
    case EACCES:
    case EPERM:
      fail(std::string("this process may not open TUN devices (run it as root; in a container: --device ") +
           kDevice + "): " + kDevice);
    default: fail(kDevice);
  }
}

[[noreturn]] void refuse_interface(const std::string& name) {
  switch (errno) {
    case EPERM:
      fail(
          "this process may not make interfaces (it needs CAP_NET_ADMIN: run it as root; in a container: "
          "--cap-add NET_ADMIN): " +
          name);
    case EBUSY:
      fail("the interface exists already (another cluster-ip runs here? --interface chooses another name): " +
           name);
    case EINVAL:
      fail("no TUN interface can have this name, or something else has it (--interface chooses another): " +
           name);
    default: fail("cannot make the interface " + name);
  }
}

ifreq request_for(const std::string& name) {
  ifreq request = {};
  std::strncpy(request.ifr_name, name.c_str(), IFNAMSIZ - 1);
  return request;
}

Descriptor open_queue(const TunSettings& settings) {
  Descriptor queue(::open(kDevice, O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!queue) refuse_device();
  ifreq request = request_for(settings.name);
  request.ifr_flags =
      static_cast<short>(IFF_TUN | IFF_NO_PI | IFF_VNET_HDR | (settings.queues > 1 ? IFF_MULTI_QUEUE : 0));
  if (::ioctl(queue.number(), TUNSETIFF, &request) != 0) refuse_interface(settings.name);
  // The kernel may hand over packets without checksum, and TCP in super-frames.
  constexpr unsigned long kOffloads = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
  if (::ioctl(queue.number(), TUNSETOFFLOAD, kOffloads) != 0)
    fail("the kernel refuses segmentation offload on a TUN device (TUNSETOFFLOAD)");
  return queue;
}

sockaddr_in ipv4(const Address& address) {
  sockaddr_in made = {};
  made.sin_family = AF_INET;
  std::memcpy(&made.sin_addr, &address[12], sizeof made.sin_addr);
  return made;
}

void add_ipv4(int control, const std::string& name, const OwnAddress& own) {
  const auto set = [&](unsigned long what, const sockaddr_in& value) {
    ifreq request = request_for(name);
    std::memcpy(&request.ifr_addr, &value, sizeof value);
    if (::ioctl(control, what, &request) != 0)
      fail("cannot give " + name + " the address " + text_of(own.address));
  };
  set(SIOCSIFADDR, ipv4(own.address));
  sockaddr_in mask = ipv4(own.address);
  mask.sin_addr.s_addr = htonl(~0U << (32 - own.prefix));
  set(SIOCSIFNETMASK, mask);
  if (own.broadcast() != own.address) set(SIOCSIFBRDADDR, ipv4(own.broadcast()));
}

/// struct in6_ifreq of <linux/ipv6.h>, which cannot be included beside <netinet/in.h>.
struct Ipv6Request {
  in6_addr address;
  std::uint32_t prefix;
  int interface;
};

void add_ipv6(const std::string& name, const OwnAddress& own) {
  const Descriptor control(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  Ipv6Request request = {{}, own.prefix, static_cast<int>(if_nametoindex(name.c_str()))};
  std::memcpy(&request.address, own.address.data(), own.address.size());
  if (!control || ::ioctl(control.number(), SIOCSIFADDR, &request) != 0)
    fail("cannot give " + name + " the address " + text_of(own.address) +
         " (sysctl net.ipv6.conf.all.disable_ipv6 has to be 0)");
}

/// Without an address that the kernel makes up: no other node would know that this one has it.
void refuse_automatic_addresses(const std::string& name) {
  const Descriptor mode(
      ::open(("/proc/sys/net/ipv6/conf/" + name + "/addr_gen_mode").c_str(), O_WRONLY | O_CLOEXEC));
  // Where this is not permitted, the address is there and reaches nobody.
  if (mode && ::write(mode.number(), "1", 1) != 1) return;
}

void configure(const TunSettings& settings) {
  const Descriptor control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!control) fail("socket");
  refuse_automatic_addresses(settings.name);
  ifreq request = request_for(settings.name);
  request.ifr_mtu = static_cast<int>(settings.mtu);
  if (::ioctl(control.number(), SIOCSIFMTU, &request) != 0)
    fail(settings.name + " cannot have the MTU " + std::to_string(settings.mtu));
  request = request_for(settings.name);
  if (::ioctl(control.number(), SIOCGIFFLAGS, &request) != 0) fail(settings.name);
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  if (::ioctl(control.number(), SIOCSIFFLAGS, &request) != 0) fail("cannot set " + settings.name + " up");
  for (const OwnAddress& own : settings.addresses) {
    if (is_ipv4(own.address)) {
      add_ipv4(control.number(), settings.name, own);
    } else {
      add_ipv6(settings.name, own);
    }
  }
}

}  // namespace

std::vector<Descriptor> open_tun(const TunSettings& settings) {
  std::vector<Descriptor> queues;
  for (unsigned i = 0; i < settings.queues; ++i) queues.push_back(open_queue(settings));
  configure(settings);
  return queues;
}

}  // namespace cluster::ip
