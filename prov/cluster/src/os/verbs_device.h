// Functions that open a device of libibverbs and ask about its ports.
#pragma once

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

/// Returns true if this node has a device of this name.
bool has_verbs_device(const VerbsLibrary& library, const std::string& name);

/// Returns false if the port cannot be queried, which means that the device is gone.
bool query_verbs_port(const VerbsLibrary& library, ibv_context* context, unsigned port, ibv_port_attr& out);

}  // namespace cluster::os
