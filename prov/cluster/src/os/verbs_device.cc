#include "os/verbs_device.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "os/cancellation.h"
#include "os/descriptor.h"
#include "os/next_hop.h"

namespace cluster::os {
namespace {

constexpr std::size_t kGidsMax = 1024;
/// The beginning of the GID of an IPv4 address.
constexpr std::array<std::byte, 12> kV4Mapped{
    {{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, std::byte{0xff}, std::byte{0xff}}};

/// The devices of this node, as long as the object exists.
class Devices {
 public:
  explicit Devices(const VerbsLibrary& library)
      : library_(library), list_(library.get_device_list(&count_), library.free_device_list) {}

  std::span<ibv_device* const> all() const {
    return {list_.get(), list_ == nullptr ? 0 : static_cast<std::size_t>(count_)};
  }
  std::string name(ibv_device* device) const { return library_.get_device_name(device); }

 private:
  const VerbsLibrary& library_;
  int count_ = 0;
  std::unique_ptr<ibv_device*, void (*)(ibv_device**)> list_;
};

/// Returns the GID of an IP address: an IPv4 address is mapped into IPv6.
std::array<std::byte, SocketAddress::kGidBytes> gid_of(const SocketAddress& address) {
  std::array<std::byte, SocketAddress::kGidBytes> gid{};
  const ConstBytes ip = address.ip();
  if (ip.size() == 4) std::ranges::copy(kV4Mapped, gid.begin());
  std::copy(ip.begin(), ip.end(), gid.end() - static_cast<std::ptrdiff_t>(ip.size()));
  return gid;
}

std::size_t mtu_bytes(ibv_mtu mtu) { return std::size_t{128} << mtu; }

/// Returns the rate of a port in Mbit/s, or 0 if it is unknown. The rate is the speed of a lane, multiplied
/// by the number of lanes. The device reports both as codes.
std::uint64_t speed_of(const ibv_port_attr& port) {
  std::uint64_t lane = 0;
  switch (port.active_speed) {
    case 1: lane = 2500; break;
    case 2: lane = 5000; break;
    case 4: [[fallthrough]];
    case 8: lane = 10000; break;
    case 16: lane = 14000; break;
    case 32: lane = 25000; break;
    case 64: lane = 50000; break;
    case 128: lane = 100000; break;
    default: break;
  }
  switch (port.active_width) {
    case 1: return lane;
    case 2: return lane * 4;
    case 4: return lane * 8;
    case 8: return lane * 12;
    case 16: return lane * 2;
    default: return 0;
  }
}

/// `interface`: the index of the interface to which the GID must belong, or 0 for any interface.
std::optional<VerbsPort> port_with(const VerbsLibrary& library, ibv_context* context, std::uint32_t interface,
                                   const std::array<std::byte, SocketAddress::kGidBytes>& wanted) {
  std::vector<ibv_gid_entry> entries(kGidsMax);
  const ssize_t count =
      library.query_gid_table(context, entries.data(), entries.size(), 0, sizeof entries.front());
  for (ssize_t i = 0; i < count; ++i) {
    const ibv_gid_entry& entry = entries[static_cast<std::size_t>(i)];
    if (entry.gid_type != IBV_GID_TYPE_ROCE_V2 || (interface != 0 && entry.ndev_ifindex != interface) ||
        std::memcmp(entry.gid.raw, wanted.data(), wanted.size()) != 0)
      continue;
    ibv_port_attr attributes;
    if (!query_verbs_port(library, context, entry.port_num, attributes)) continue;
    VerbsPort found;
    found.port = entry.port_num;
    found.gid_index = entry.gid_index;
    found.interface = entry.ndev_ifindex;
    found.gid = SocketAddress::queue_pair(wanted.data(), 0);
    found.active = attributes.state == IBV_PORT_ACTIVE;
    found.mtu = mtu_bytes(attributes.active_mtu);
    found.speed_mbit = speed_of(attributes);
    return found;
  }
  return std::nullopt;
}

}  // namespace

VerbsHandle<ibv_context> open_verbs_device(const VerbsLibrary& library, const std::string& name) {
  const PutOffCancellation off;
  const Devices devices(library);
  errno = ENODEV;
  for (ibv_device* const device : devices.all()) {
    if (devices.name(device) == name) return {library.open_device(device), {library.close_device}};
  }
  return {nullptr, {library.close_device}};
}

bool has_verbs_device(const VerbsLibrary& library, const std::string& name) {
  const PutOffCancellation off;
  const Devices devices(library);
  return std::ranges::any_of(devices.all(), [&](ibv_device* device) { return devices.name(device) == name; });
}

bool query_verbs_port(const VerbsLibrary& library, ibv_context* context, unsigned port, ibv_port_attr& out) {
  out = {};
  // An old library knows only the first fields of ibv_port_attr. The header declares the same structure under
  // another name for this call.
  auto* const fields = reinterpret_cast<_compat_ibv_port_attr*>(&out);
  return library.query_port(context, static_cast<std::uint8_t>(port), fields) == 0;
}

bool has_verbs_gid(const VerbsLibrary& library, ibv_context* context, const VerbsPort& port) {
  std::array<std::byte, SocketAddress::kGidBytes> gid;
  std::ranges::copy(port.gid.ip(), gid.begin());
  const std::optional<VerbsPort> found = port_with(library, context, port.interface, gid);
  return found && found->port == port.port && found->gid_index == port.gid_index;
}

bool can_reach_gid(const VerbsPort& port, const std::array<std::byte, SocketAddress::kGidBytes>& gid) {
  if (port.interface == 0) return true;
  const bool v4 = std::equal(kV4Mapped.begin(), kV4Mapped.end(), gid.begin());
  return hardware_address_known(ConstBytes(gid).subspan(v4 ? kV4Mapped.size() : 0), port.interface);
}

/// The interface may have another index than before, because a driver that is loaded again makes it anew.
std::optional<VerbsPort> find_verbs_port_again(const VerbsLibrary& library, const VerbsPort& known) {
  const VerbsHandle<ibv_context> context = open_verbs_device(library, known.device);
  if (context == nullptr) return std::nullopt;
  const PutOffCancellation off;
  std::array<std::byte, SocketAddress::kGidBytes> gid;
  std::ranges::copy(known.gid.ip(), gid.begin());
  std::optional<VerbsPort> found = port_with(library, context.get(), 0, gid);
  if (found) found->device = known.device;
  return found;
}

std::optional<VerbsPort> find_verbs_port(const std::string& file, const Interface& interface,
                                         const SocketAddress& address, std::string& reason) {
  constexpr const char* kNoDevice = "this node has no RDMA device (\"rdma link\" would show it)";
  if (file == kVerbsLibrary && ::access("/sys/class/infiniband", F_OK) != 0) {
    reason = kNoDevice;
    return std::nullopt;
  }
  const VerbsLibrary* const library = load_verbs_library(file, reason);
  if (library == nullptr) return std::nullopt;
  const PutOffCancellation off;
  const Devices devices(*library);
  if (devices.all().empty()) {
    reason = kNoDevice;
    return std::nullopt;
  }
  std::string refused;
  for (ibv_device* const device : devices.all()) {
    const VerbsHandle<ibv_context> context(library->open_device(device), {library->close_device});
    if (context == nullptr) {
      refused = devices.name(device) + " cannot be opened: " + error_text(errno);
      continue;
    }
    std::optional<VerbsPort> found =
        port_with(*library, context.get(), static_cast<std::uint32_t>(interface.index), gid_of(address));
    if (!found) continue;
    found->device = devices.name(device);
    return found;
  }
  reason = !refused.empty()
               ? refused
               : "no RDMA device has a RoCE version 2 GID of " + address.ip_text() + " on " + interface.name;
  return std::nullopt;
}

}  // namespace cluster::os
