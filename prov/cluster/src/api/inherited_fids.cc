#include "api/inherited_fids.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_eq.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <vector>

#include "api/ops_tables.h"

namespace cluster::api {
namespace {

/// Immortal: objects are closed, and processes fork, while static destructors run.
struct Registry {
  std::mutex mutex;
  std::vector<fid*> open;
};
Registry& registry() {
  static auto& instance = *new Registry;
  return instance;
}

constexpr const char* kText = "a forked child cannot use what its parent has opened";

const char* write_text(char* buffer, std::size_t size) {
  if (buffer == nullptr || size == 0) return kText;
  std::snprintf(buffer, size, "%s", kText);
  return buffer;
}
const char* cq_text(fid_cq*, int, const void*, char* buffer, std::size_t size) noexcept {
  return write_text(buffer, size);
}
const char* eq_text(fid_eq*, int, const void*, char* buffer, std::size_t size) noexcept {
  return write_text(buffer, size);
}

constinit fi_ops inherited_fid_ops = fid_ops({.close = [](fid*) { return 0; },
                                              .bind = kEopbadstate,
                                              .control = kEopbadstate,
                                              .ops_open = kEopbadstate});

constinit fi_ops_cq inherited_cq_ops = {.size = sizeof(fi_ops_cq),
                                        .read = kEopbadstate,
                                        .readfrom = kEopbadstate,
                                        .readerr = kEopbadstate,
                                        .sread = kEopbadstate,
                                        .sreadfrom = kEopbadstate,
                                        .signal = kEopbadstate,
                                        .strerror = cq_text};

constinit fi_ops_eq inherited_eq_ops = {.size = sizeof(fi_ops_eq),
                                        .read = kEopbadstate,
                                        .readerr = kEopbadstate,
                                        .write = kEopbadstate,
                                        .sread = kEopbadstate,
                                        .strerror = eq_text};

void disable(fid_ep& endpoint) {
  endpoint.ops = &disabled_ops<fi_ops_ep>;
  endpoint.cm = &disabled_ops<fi_ops_cm>;
  endpoint.msg = &disabled_ops<fi_ops_msg>;
  endpoint.rma = &disabled_ops<fi_ops_rma>;
  endpoint.tagged = &disabled_ops<fi_ops_tagged>;
  endpoint.atomic = &atomic_ops_disabled;
  endpoint.collective = &disabled_ops<fi_ops_collective>;
}

void disable(fid_domain& domain) {
  domain.ops = &disabled_ops<fi_ops_domain>;
  domain.mr = &disabled_ops<fi_ops_mr>;
}

template <typename Handle>
Handle& handle_of(fid* object) {
  return *reinterpret_cast<Handle*>(object);
}

void disable(fid* object) {
  object->ops = &inherited_fid_ops;
  switch (object->fclass) {
    case FI_CLASS_EP: return disable(handle_of<fid_ep>(object));
    case FI_CLASS_DOMAIN: return disable(handle_of<fid_domain>(object));
    case FI_CLASS_CQ: handle_of<fid_cq>(object).ops = &inherited_cq_ops; return;
    case FI_CLASS_EQ: handle_of<fid_eq>(object).ops = &inherited_eq_ops; return;
    case FI_CLASS_CNTR: handle_of<fid_cntr>(object).ops = &disabled_ops<fi_ops_cntr>; return;
    case FI_CLASS_FABRIC: handle_of<fid_fabric>(object).ops = &disabled_ops<fi_ops_fabric>; return;
    default: return;
  }
}

}  // namespace

InheritedFid::InheritedFid(fid& object) : object_(object) {
  const std::lock_guard guard(registry().mutex);
  registry().open.push_back(&object);
}

InheritedFid::~InheritedFid() {
  const std::lock_guard guard(registry().mutex);
  std::erase(registry().open, &object_);
}

void lock_fids_to_inherit() { registry().mutex.lock(); }
void unlock_fids_to_inherit() { registry().mutex.unlock(); }

/// They are left to themselves: what the child opens is its own.
void disable_inherited_fids() {
  for (fid* object : registry().open) disable(object);
  registry().open.clear();
  registry().mutex.unlock();
}

}  // namespace cluster::api
