// Functions that open a device of libibverbs and ask about its ports.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "base/address.h"
#include "os/verbs_library.h"
#include "os/verbs_link.h"

namespace cluster::os {

/// Destroys an object of libibverbs with the library's destroy function for its type.
template <typename Object>
struct VerbsDeleter {
  int (*destroy)(Object*) = nullptr;
  void operator()(Object* object) const { destroy(object); }
};
template <typename Object>
using VerbsHandle = std::unique_ptr<Object, VerbsDeleter<Object>>;

/// Opens the device of this name. Returns null and sets errno on failure.
VerbsHandle<ibv_context> open_verbs_device(const VerbsLibrary& library, const std::string& name);

/// Looks again for a port that was found before: a port of the device with the same name that has the same
/// GID. Returns nullopt if there is none.
std::optional<VerbsPort> find_verbs_port_again(const VerbsLibrary& library, const VerbsPort& known);

/// Returns true if the GID of `port` still has the same index. It may have another one after its IP address
/// was removed and added again.
bool has_verbs_gid(const VerbsLibrary& library, ibv_context* context, const VerbsPort& port);

/// Returns false if the kernel would have to wait before it knows how to reach the GID through `port`. The
/// kernel then resolves the address meanwhile, so the caller should try again soon. Calls that take a GID wait
/// up to one second, and the caller holds the lock of its engine.
bool can_reach_gid(const VerbsPort& port, const std::array<std::byte, SocketAddress::kGidBytes>& gid);

/// Returns true if this node has a device of this name.
bool has_verbs_device(const VerbsLibrary& library, const std::string& name);

/// Returns false if the port cannot be queried, which means that the device is gone.
bool query_verbs_port(const VerbsLibrary& library, ibv_context* context, unsigned port, ibv_port_attr& out);

}  // namespace cluster::os
