// Callers of every version of the interface see one entry for each kind of endpoint, and the first
// makes sense to them.
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstring>

#include "getinfo_checks.h"

namespace load {
namespace {

constexpr std::uint64_t kEverybodysCaps = FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_DIRECTED_RECV;

std::uint32_t version_after(std::uint32_t version) {
  return version == FI_VERSION(1, 21) ? FI_VERSION(2, 0)
                                      : FI_VERSION(FI_MAJOR(version), FI_MINOR(version) + 1);
}

void check_names(const fi_info& info, std::uint32_t version, Expectations& verdict) {
  const unsigned major = FI_MAJOR(version), minor = FI_MINOR(version);
  const char* provider = info.fabric_attr->prov_name;
  verdict.expect(provider != nullptr && std::strcmp(provider, "cluster") == 0,
                 "%u.%u: the provider's name is plain cluster, not %s", major, minor, provider);
  verdict.expect(info.fabric_attr->name != nullptr && std::strchr(info.fabric_attr->name, '/') != nullptr,
                 "%u.%u: the fabric is a network", major, minor);
  verdict.expect(info.domain_attr->name != nullptr, "%u.%u: the domain has a name", major, minor);
  verdict.expect(info.src_addr != nullptr && info.src_addrlen >= 16, "%u.%u: there is a source address",
                 major, minor);
  verdict.expect(info.addr_format == FI_SOCKADDR_IN || info.addr_format == FI_SOCKADDR_IN6,
                 "%u.%u: the address format is concrete, not %u", major, minor, info.addr_format);
}

void check_attributes(const fi_info& info, std::uint32_t version, Expectations& verdict) {
  const unsigned major = FI_MAJOR(version), minor = FI_MINOR(version);
  const auto expect = [&](bool held, const char* what) {
    verdict.expect(held, "%u.%u: %s", major, minor, what);
  };
  expect(info.mode == 0 && info.tx_attr->mode == 0 && info.rx_attr->mode == 0 && info.domain_attr->mode == 0,
         "no mode bit is demanded");
  expect(info.ep_attr->type == FI_EP_RDM, "the endpoint type is RDM");
  expect((info.tx_attr->caps & ~info.caps) == 0 && (info.rx_attr->caps & ~info.caps) == 0,
         "both sides' capabilities are among those of the entry");
  expect((info.tx_attr->caps & (FI_RECV | FI_DIRECTED_RECV | FI_SOURCE)) == 0, "nothing of rx is in tx");
  expect((info.rx_attr->caps & FI_SEND) == 0, "nothing of tx is in rx");
  expect(info.ep_attr->max_msg_size >= 1ull << 40, "max_msg_size is at least 1 TB");
  expect(info.tx_attr->inject_size >= 16 && info.tx_attr->iov_limit >= 1, "limits are sane");
  expect(info.domain_attr->resource_mgmt == FI_RM_ENABLED, "resources are managed");
  expect(info.domain_attr->max_ep_tx_ctx == 1, "no scalable endpoints that consumers would switch to");
  if (version < FI_VERSION(1, 5)) {
    expect(info.domain_attr->mr_mode == FI_MR_BASIC || info.domain_attr->mr_mode == FI_MR_SCALABLE,
           "mr_mode is one of the two that such a caller knows");
  } else {
    expect(info.domain_attr->mr_mode == 0, "mr_mode is 0");
  }
}

void ask_one(const InfoCalls& calls, std::uint32_t version, Expectations& verdict) {
  const GetinfoResult plain = ask(calls, {.version = version}, nullptr);
  verdict.expect(plain.error == 0, "%u.%u without hints: found, not %d", FI_MAJOR(version), FI_MINOR(version),
                 plain.error);
  if (plain.list != nullptr) {
    check_names(*plain.list, version, verdict);
    const fi_info* second = plain.list->next;
    const fi_info* third = second != nullptr ? second->next : nullptr;
    verdict.expect(third != nullptr && second->ep_attr->type == FI_EP_MSG &&
                       third->ep_attr->type == FI_EP_DGRAM && third->next == nullptr,
                   "%u.%u: connections come second, datagrams third, and nothing fourth", FI_MAJOR(version),
                   FI_MINOR(version));
    check_attributes(*plain.list, version, verdict);
    verdict.expect((plain.list->caps & kEverybodysCaps) == kEverybodysCaps,
                   "%u.%u: all capabilities without hints", FI_MAJOR(version), FI_MINOR(version));
  }
  const Info hints = new_hints(calls);
  hints->caps = FI_TAGGED;
  hints->mode = FI_CONTEXT;
  hints->ep_attr->type = FI_EP_RDM;
  const GetinfoResult tagged = ask(calls, {.version = version}, hints.get());
  verdict.expect(tagged.error == 0, "%u.%u tagged: found, not %d", FI_MAJOR(version), FI_MINOR(version),
                 tagged.error);
  if (tagged.list != nullptr) {
    check_names(*tagged.list, version, verdict);
    verdict.expect(tagged.list->next == nullptr, "%u.%u tagged: one entry", FI_MAJOR(version),
                   FI_MINOR(version));
    check_attributes(*tagged.list, version, verdict);
    verdict.expect((tagged.list->caps & (FI_MSG | FI_DIRECTED_RECV)) == 0,
                   "%u.%u: primary capabilities only if asked", FI_MAJOR(version), FI_MINOR(version));
    const GetinfoResult again = ask(calls, {.version = version}, tagged.list.get());
    verdict.expect(again.error == 0, "%u.%u: our own answer is accepted as hints, not %d", FI_MAJOR(version),
                   FI_MINOR(version), again.error);
  }
}

}  // namespace

void check_every_version(const LibfabricLibrary& core, Expectations& verdict) {
  ask_one(core.calls, 0, verdict);
  for (std::uint32_t version = FI_VERSION(1, 0); version <= core.version; version = version_after(version)) {
    ask_one(core.calls, version, verdict);
  }
  // Binaries of old distributions on a new core.
  const InfoCalls& old = core.old_calls;
  if (old.getinfo != nullptr && old.dupinfo != nullptr && old.freeinfo != nullptr) {
    ask_one(old, FI_VERSION(1, 5), verdict);
    ask_one(old, FI_VERSION(1, 17), verdict);
  }
  const GetinfoResult future = ask(core.calls, {.version = version_after(core.version)}, nullptr);
  verdict.expect(future.error != 0, "a version later than the core's is refused");
}

}  // namespace load
