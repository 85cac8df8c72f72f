#include "api/domain.h"

#include "api/av.h"
#include "api/cntr.h"
#include "api/cq.h"
#include "api/endpoint.h"
#include "api/ops_tables.h"
#include "api/poll_set.h"
#include "api/shared_contexts.h"

namespace cluster::api {
namespace {

int open_poll_set(fid_domain* domain, fi_poll_attr* attributes, fid_poll** set) noexcept {
  return open_object<PollSet, Domain>(domain, attributes, set, nullptr);
}

constinit fi_ops domain_fid_ops = fid_ops({.close = close_object<Domain>,
                                           .bind = Method<&Domain::bind>::entry,
                                           .control = Method<&Domain::control>::entry});

constinit fi_ops_domain domain_ops = {
    .size = sizeof(fi_ops_domain),
    .av_open = open_object<Av, Domain>,
    .cq_open = open_object<Cq, Domain>,
    .endpoint = open_object<Endpoint, Domain>,
    .scalable_ep = kEnosys,
    .cntr_open = open_object<Cntr, Domain>,
    .poll_open = open_poll_set,
    .stx_ctx = open_object<SharedTx, Domain>,
    .srx_ctx = open_object<SharedRx, Domain>,
    .query_atomic = query_atomic,
    .query_collective = query_collective,
    .endpoint2 = open_object2<Endpoint, Domain>,
};

/// Returns true for FI_MR_BASIC and for the bits that replace it. One bit is enough for the test, because
/// these bits are granted together or not at all.
bool is_basic(int mr_mode) { return mr_mode == FI_MR_BASIC || (mr_mode & FI_MR_PROV_KEY) != 0; }

}  // namespace

Domain::Domain(Fabric& fabric, const fi_info& info, void* context)
    : fid_domain{{FI_CLASS_DOMAIN, context, &domain_fid_ops}, &domain_ops, &mr_ops},
      fabric_(fabric),
      name_(text_or_empty(attributes_at(info.domain_attr).name)),
      address_format_(info.addr_format),
      regions_(fabric.platform().fence(), fabric.platform().open_region_offers()),
      basic_registration_(info.domain_attr != nullptr && is_basic(info.domain_attr->mr_mode)),
      automatic_(info.domain_attr != nullptr && info.domain_attr->data_progress == FI_PROGRESS_AUTO),
      auth_key_(GivenAuthKey(attributes_at(info.domain_attr), fabric.api_version)) {}

int Domain::open(Fabric& fabric, const fi_info* info, fid_domain** handle, void* context) {
  if (info == nullptr) return -FI_EINVAL;
  const GivenAuthKey key(attributes_at(info->domain_attr), fabric.api_version);
  if (const char* const refusal = key.refusal()) {
    fabric.platform().log().warn("cannot open a domain: %s", refusal);
    return -FI_EINVAL;
  }
  *handle = new Domain(fabric, *info, context);
  return 0;
}

const std::string* Domain::name_of(const fid_domain& handle) {
  return handle.ops == &domain_ops ? &static_cast<const Domain&>(handle).name_ : nullptr;
}

int Domain::bind(fid_t object, std::uint64_t flags) {
  if (object == nullptr || object->fclass != FI_CLASS_EQ) return -FI_EINVAL;
  if (flags & FI_REG_MR) return -FI_ENOSYS;
  eq_.set(object_of<Eq>(object));
  return 0;
}

int Domain::control(int command, void* argument) {
  switch (command) {
    case FI_QUEUE_WORK: return deferred_work_.queue(*this, static_cast<fi_deferred_work*>(argument));
    case FI_CANCEL_WORK: return deferred_work_.cancel(static_cast<const fi_deferred_work*>(argument));
    case FI_FLUSH_WORK: return deferred_work_.flush(static_cast<fid_t>(argument));
    default: return -FI_ENOSYS;
  }
}

}  // namespace cluster::api
