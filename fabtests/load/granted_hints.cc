// Hints that the provider must grant, and fields that it must return exactly as requested.
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstring>
#include <functional>

#include "getinfo_checks.h"

namespace load {
namespace {

using Change = std::function<void(fi_info&)>;
using Predicate = std::function<bool(const fi_info&)>;

void grant(const LibfabricLibrary& core, Expectations& verdict, const char* what, const Change& change,
           const Predicate& fits) {
  const Info hints = new_hints(core.calls);
  hints->ep_attr->type = FI_EP_RDM;
  change(*hints);
  const GetinfoResult answer = ask(core.calls, {.version = core.version}, hints.get());
  verdict.expect(answer.error == 0, "%s: granted, not %d", what, answer.error);
  if (answer.list != nullptr) verdict.expect(fits(*answer.list), "%s: the answer fits", what);
}

bool anything(const fi_info&) { return true; }

void grant_models(const LibfabricLibrary& core, Expectations& verdict) {
  for (int threading = FI_THREAD_SAFE; threading <= FI_THREAD_ENDPOINT; ++threading) {
    const auto asked = static_cast<fi_threading>(threading);
    // Later cores have no FID and ENDPOINT of their own and may turn them into another on the way.
    grant(
        core, verdict, "threading", [=](fi_info& hints) { hints.domain_attr->threading = asked; },
        [=](const fi_info& info) { return info.domain_attr->threading == asked; });
  }
  for (const auto type : {FI_AV_MAP, FI_AV_TABLE, FI_AV_UNSPEC}) {
    grant(
        core, verdict, "av_type", [=](fi_info& hints) { hints.domain_attr->av_type = type; },
        [=](const fi_info& info) { return info.domain_attr->av_type == type; });
  }
  grant(
      core, verdict, "manual progress",
      [](fi_info& hints) {
        hints.domain_attr->control_progress = FI_PROGRESS_MANUAL;
        hints.domain_attr->data_progress = FI_PROGRESS_MANUAL;
      },
      [](const fi_info& info) {
        return info.domain_attr->control_progress == FI_PROGRESS_MANUAL &&
               info.domain_attr->data_progress == FI_PROGRESS_MANUAL;
      });
}

void grant_registration_modes(const LibfabricLibrary& core, Expectations& verdict) {
  for (int bits = 0; bits < 256; ++bits) {
    const int mode = bits << 2;  // from FI_MR_LOCAL up
    grant(
        core, verdict, "mr_mode bits", [=](fi_info& hints) { hints.domain_attr->mr_mode = mode; },
        [=](const fi_info& info) { return (info.domain_attr->mr_mode & ~mode) == 0; });
  }
  for (const int mode : {static_cast<int>(FI_MR_BASIC), static_cast<int>(FI_MR_SCALABLE)}) {
    grant(
        core, verdict, "mr_mode of old", [=](fi_info& hints) { hints.domain_attr->mr_mode = mode; },
        [=](const fi_info& info) { return info.domain_attr->mr_mode == mode; });
  }
}

void grant_sides(const LibfabricLibrary& core, Expectations& verdict) {
  grant(
      core, verdict, "order and flags",
      [](fi_info& hints) {
        hints.tx_attr->msg_order = hints.rx_attr->msg_order = FI_ORDER_SAS;
        hints.tx_attr->op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
        hints.rx_attr->op_flags = FI_COMPLETION;
      },
      [](const fi_info& info) {
        return (info.tx_attr->msg_order & FI_ORDER_SAS) != 0 && info.rx_attr->op_flags == FI_COMPLETION &&
               info.tx_attr->op_flags == (FI_COMPLETION | FI_DELIVERY_COMPLETE);
      });
  grant(
      core, verdict, "sizes", [](fi_info& hints) { hints.tx_attr->size = hints.rx_attr->size = 77; },
      [](const fi_info& info) { return info.tx_attr->size == 77 && info.rx_attr->size == 77; });
  grant(
      core, verdict, "foreign bits in one side's caps",
      [](fi_info& hints) {
        hints.tx_attr->caps = FI_MSG | FI_SEND | FI_RECV | FI_DIRECTED_RECV | FI_SOURCE;
        hints.rx_attr->caps = FI_MSG | FI_SEND | FI_RECV;
      },
      [](const fi_info& info) { return (info.tx_attr->caps & FI_RECV) == 0; });
  grant(
      core, verdict, "source when asked", [](fi_info& hints) { hints.caps = FI_MSG | FI_SOURCE; },
      [](const fi_info& info) { return (info.rx_attr->caps & FI_SOURCE) != 0; });
  grant(
      core, verdict, "no source unasked", [](fi_info& hints) { hints.caps = FI_MSG; },
      [](const fi_info& info) { return (info.caps & FI_SOURCE) == 0; });
}

void grant_partial_hints(const LibfabricLibrary& core, Expectations& verdict) {
  fi_info bare{};  // on the stack, with none of its parts
  bare.caps = FI_MSG;
  const GetinfoResult answer = ask(core.calls, {.version = core.version}, &bare);
  verdict.expect(answer.error == 0, "hints without parts: granted, not %d", answer.error);
  // Open MPI's mtl/ofi.
  grant(
      core, verdict, "Open MPI",
      [](fi_info& hints) {
        hints.mode = FI_CONTEXT | FI_CONTEXT2;
        hints.caps = FI_MSG | FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV;
        hints.tx_attr->msg_order = hints.rx_attr->msg_order = FI_ORDER_SAS;
        hints.tx_attr->op_flags = hints.rx_attr->op_flags = FI_COMPLETION;
        hints.domain_attr->threading = FI_THREAD_DOMAIN;
        hints.domain_attr->cq_data_size = 4;
        hints.domain_attr->av_type = FI_AV_MAP;
        hints.domain_attr->resource_mgmt = FI_RM_ENABLED;
      },
      [](const fi_info& info) { return info.domain_attr->threading == FI_THREAD_DOMAIN; });
}

/// What cores appended to fi_domain_attr behind what 1.17 knows of it.
void check_tail(const LibfabricLibrary& core, Expectations& verdict) {
  const GetinfoResult answer = ask(core.calls, {.version = core.version}, nullptr);
  if (answer.list == nullptr || core.version < FI_VERSION(2, 5)) return;
  std::uint64_t largest[2];
  std::memcpy(largest, reinterpret_cast<const char*>(answer.list->domain_attr) + 208, sizeof largest);
  verdict.expect(largest[0] == UINT64_MAX && largest[1] == UINT64_MAX, "counters count to 2^64 - 1");
}

}  // namespace

void check_granted_hints(const LibfabricLibrary& core, Expectations& verdict) {
  grant_models(core, verdict);
  grant_registration_modes(core, verdict);
  grant_sides(core, verdict);
  grant_partial_hints(core, verdict);
  check_tail(core, verdict);
  grant(
      core, verdict, "any mode bits", [](fi_info& hints) { hints.mode = ~0ull; }, anything);
}

}  // namespace load
