#include "api/fabric.h"

#include <rdma/fi_endpoint.h>

#include "api/domain.h"
#include "api/event_source.h"
#include "api/event_wait_set.h"
#include "api/passive_endpoint.h"

namespace cluster::api {
namespace {

int arm(fid* object) {
  if (object->fclass == FI_CLASS_WAIT) return object_of<EventWaitSet>(object).arm();
  return with_event_source(*object, [](auto& source) { return source.arm(); });
}

/// Implements fi_trywait. Returns 0 if the descriptors of all objects are armed.
int trywait(fid_fabric*, fid** objects, int count) noexcept {
  if (count < 0 || (count > 0 && objects == nullptr)) return -FI_EINVAL;
  return guarded([&]() -> int {
    for (int i = 0; i < count; ++i) {
      if (const int error = arm(objects[i])) return error;
    }
    return 0;
  });
}

int open_wait_set(fid_fabric* fabric, fi_wait_attr* attributes, fid_wait** set) noexcept {
  return open_object<EventWaitSet, Fabric>(fabric, attributes, set, nullptr);
}

constinit fi_ops fabric_fid_ops = fid_ops({.close = close_object<Fabric>});

constinit fi_ops_fabric fabric_ops = {
    .size = sizeof(fi_ops_fabric),
    .domain = open_object<Domain, Fabric>,
    .passive_ep = open_object<PassiveEndpoint, Fabric>,
    .eq_open = open_object<Eq, Fabric>,
    .wait_open = open_wait_set,
    .trywait = trywait,
    .domain2 = open_object2<Domain, Fabric>,
};

}  // namespace

Fabric::Fabric(Platform& platform, const fi_fabric_attr* attributes, void* context)
    : fid_fabric{{FI_CLASS_FABRIC, context, &fabric_fid_ops},
                 &fabric_ops,
                 attributes_at(attributes).api_version},
      platform_(platform),
      name_(text_or_empty(attributes_at(attributes).name)) {}

const std::string* Fabric::name_of(const fid_fabric& handle) {
  return handle.ops == &fabric_ops ? &static_cast<const Fabric&>(handle).name_ : nullptr;
}

int open_fabric(fi_fabric_attr* attributes, fid_fabric** handle, void* context, Platform& platform) {
  if (handle == nullptr) return -FI_EINVAL;
  return guarded([&] {
    *handle = new Fabric(platform, attributes, context);
    return 0;
  });
}

}  // namespace cluster::api
