// The link over an RDMA device: a queue pair for unreliable datagrams (UD) of libibverbs. The link is one
// more rail of an endpoint, beside its Ethernet rails. The address of the link is a GID and the number of the
// queue pair. The link carries only frames of sessions: first contact and keep-alives belong to the UDP port.
//
// The device belongs to the interface with the endpoint's address: one entry of the device's table of GIDs is
// the RoCE version 2 GID of that address. Received frames are in registered buffers, which the link gives
// back to the device with the next receive_burst(). The link copies each frame to send into a registered
// buffer. The driver copies a short frame further into the request itself (inline data), if the device can do
// that.
//
// An error ends only the link. If the device or the queue pair fails, the link logs one line, gives the
// device back, drops all frames and reports each peer's path as failed. While the port is down, the link
// drops frames, and it works again when the port is up. A link whose device has failed looks for the device
// at intervals. If the device is back under the same name, with the same GID, the link opens a new queue pair
// and calls the handler of on_move().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "link/link.h"
#include "os/interfaces.h"

namespace cluster::os {

inline constexpr const char* kVerbsLibrary = "libibverbs.so.1";

/// A port of an RDMA device, and its GID for one address.
struct VerbsPort {
  std::string device;  ///< "rxe0"
  unsigned port = 1;
  unsigned gid_index = 0;
  std::uint32_t interface = 0;  ///< the index of the interface with the GID; 0: unknown
  SocketAddress gid;            ///< with queue pair 0
  bool active = false;
  std::size_t mtu = 0;           ///< bytes; the longest frame
  std::uint64_t speed_mbit = 0;  ///< 0: unknown

  /// Returns the name that `rdma link` shows, such as "rxe0/1".
  std::string name() const { return device + "/" + std::to_string(port); }
};

/// Returns the port whose table of GIDs has the RoCE version 2 GID of `address`, an address of `interface`.
/// Returns nullopt if there is none, and writes the cause to `reason`. `library`: the file name of
/// libibverbs. If `library` is kVerbsLibrary and the node has no RDMA device, does not load the library.
std::optional<VerbsPort> find_verbs_port(const std::string& library, const Interface& interface,
                                         const SocketAddress& address, std::string& reason);

enum class VerbsState : std::uint8_t { active, port_down, failed };

struct OpenedVerbs {
  std::unique_ptr<link::Link> link;
  SocketAddress address;                                 ///< the address of the queue pair
  std::shared_ptr<const std::atomic<VerbsState>> state;  ///< the state of the link, for reports
};

/// Opens a link on `port`. On failure, `link` is null, and `reason` has the cause and the remedy.
OpenedVerbs open_verbs_link(const std::string& library, const VerbsPort& port, const Environment& environment,
                            std::string& reason);

}  // namespace cluster::os
