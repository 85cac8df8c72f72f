#include "api/fid_object.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_eq.h>

#include <mutex>
#include <new>
#include <vector>

#include "api/ops_tables.h"

namespace cluster::api {

int fi_errno_of(Status status) {
  switch (status) {
    case Status::ok: return 0;
    case Status::again: return FI_EAGAIN;
    case Status::too_big: return FI_EMSGSIZE;
    case Status::bad_address: return FI_EINVAL;
    case Status::truncated: return FI_ETRUNC;
    case Status::canceled: return FI_ECANCELED;
    case Status::no_message: return FI_ENOMSG;
    case Status::unreachable:
    case Status::prohibited:
    case Status::translated: return FI_EHOSTUNREACH;
    case Status::refused: return FI_ECONNREFUSED;
    case Status::reset:
    case Status::ended: return FI_ECONNRESET;
    case Status::exhausted: return FI_ENOBUFS;
    case Status::no_memory: return FI_ENOMEM;
    case Status::overrun: return FI_EOVERRUN;
    case Status::stuck: return FI_ETIMEDOUT;
    case Status::unknown_source: return FI_EADDRNOTAVAIL;
    case Status::access: return FI_EACCES;
  }
  return FI_EOTHER;
}

int fi_errno_of_exception() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return FI_ENOMEM;
  } catch (...) {
    return FI_EOTHER;
  }
}

namespace {

/// The objects that have an InheritedFid. The registry is never destroyed, because applications may close
/// objects or fork while static destructors run.
struct Registry {
  std::mutex mutex;
  std::vector<fid*> open;
};
Registry& registry() {
  static auto& instance = *new Registry;
  return instance;
}

constinit fi_ops inherited_fid_ops = fid_ops({.close = [](fid*) { return 0; },
                                              .bind = kEopbadstate,
                                              .control = kEopbadstate,
                                              .ops_open = kEopbadstate});

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
    case FI_CLASS_EP:
    case FI_CLASS_SRX_CTX: return disable(handle_of<fid_ep>(object));
    case FI_CLASS_PEP:
      handle_of<fid_pep>(object).ops = &disabled_ops<fi_ops_ep>;
      handle_of<fid_pep>(object).cm = &disabled_ops<fi_ops_cm>;
      return;
    case FI_CLASS_DOMAIN: return disable(handle_of<fid_domain>(object));
    case FI_CLASS_CQ: handle_of<fid_cq>(object).ops = &disabled_ops<fi_ops_cq>; return;
    case FI_CLASS_EQ: handle_of<fid_eq>(object).ops = &disabled_ops<fi_ops_eq>; return;
    case FI_CLASS_CNTR: handle_of<fid_cntr>(object).ops = &disabled_ops<fi_ops_cntr>; return;
    case FI_CLASS_POLL: handle_of<fid_poll>(object).ops = &disabled_ops<fi_ops_poll>; return;
    case FI_CLASS_WAIT: handle_of<fid_wait>(object).ops = &disabled_ops<fi_ops_wait>; return;
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

/// Makes all registered objects unusable. Then empties the registry, because the objects that the child opens
/// later are its own.
void disable_inherited_fids() {
  for (fid* object : registry().open) disable(object);
  registry().open.clear();
  registry().mutex.unlock();
}

}  // namespace cluster::api
