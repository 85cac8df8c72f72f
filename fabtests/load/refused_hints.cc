// Hints that the provider must refuse: other kinds of endpoints, missing capabilities, too large sizes, names that no
// host has.
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstdlib>
#include <cstring>

#include "getinfo_checks.h"

namespace load {
namespace {

struct Refusal {
  const char* what;
  void (*change)(fi_info& hints);
};

constexpr Refusal kRefusals[] = {
    {"multicast over connections",
     [](fi_info& hints) {
       hints.ep_attr->type = FI_EP_MSG;
       hints.caps = FI_MSG | FI_MULTICAST;
     }},
    {"tagged datagrams",
     [](fi_info& hints) {
       hints.ep_attr->type = FI_EP_DGRAM;
       hints.caps = FI_TAGGED;
     }},
    {"datagrams longer than a frame",
     [](fi_info& hints) {
       hints.ep_attr->type = FI_EP_DGRAM;
       hints.ep_attr->max_msg_size = 1 << 16;
     }},
    {"multicast of datagrams",
     [](fi_info& hints) {
       hints.ep_attr->type = FI_EP_DGRAM;
       hints.caps = FI_MSG | FI_MULTICAST;
     }},
    {"undefined capability bits", [](fi_info& hints) { hints.caps = FI_MSG | 1ull << 63; }},
    {"device memory", [](fi_info& hints) { hints.caps = FI_MSG | FI_HMEM; }},
    {"shared address vectors", [](fi_info& hints) { hints.domain_attr->caps = FI_SHARED_AV; }},
    {"another protocol", [](fi_info& hints) { hints.ep_attr->protocol = FI_PROTO_UDP; }},
    {"a later protocol version", [](fi_info& hints) { hints.ep_attr->protocol_version = 1000; }},
    {"messages of any size at all", [](fi_info& hints) { hints.ep_attr->max_msg_size = SIZE_MAX; }},
    {"two transmit contexts", [](fi_info& hints) { hints.ep_attr->tx_ctx_cnt = 2; }},
    {"two receive contexts", [](fi_info& hints) { hints.ep_attr->rx_ctx_cnt = 2; }},
    {"huge injections", [](fi_info& hints) { hints.tx_attr->inject_size = 1 << 20; }},
    {"long vectors", [](fi_info& hints) { hints.rx_attr->iov_limit = 1000; }},
    {"completion at commit", [](fi_info& hints) { hints.tx_attr->op_flags = FI_COMMIT_COMPLETE; }},
    {"ordered completions", [](fi_info& hints) { hints.tx_attr->comp_order = FI_ORDER_STRICT; }},
    {"16 bytes of completion data", [](fi_info& hints) { hints.domain_attr->cq_data_size = 16; }},
    {"an authorization key", [](fi_info& hints) { hints.domain_attr->auth_key_size = 8; }},
    {"keys of the address vector",
     [](fi_info& hints) { hints.domain_attr->auth_key_size = SIZE_MAX; }},  // FI_AV_AUTH_KEY
    {"InfiniBand addresses", [](fi_info& hints) { hints.addr_format = FI_SOCKADDR_IB; }},
    {"addresses as text", [](fi_info& hints) { hints.addr_format = FI_ADDR_STR; }},
    {"buffers of a size", [](fi_info& hints) { hints.rx_attr->total_buffered_recv = 1; }},
    {"prefixes", [](fi_info& hints) { hints.ep_attr->msg_prefix_size = 40; }},
    {"every registration mode at once", [](fi_info& hints) { hints.domain_attr->mr_mode = ~0; }},
    {"a later version", [](fi_info& hints) { hints.fabric_attr->prov_version = FI_VERSION(1000, 0); }},
    {"a domain that does not exist",
     [](fi_info& hints) { hints.domain_attr->name = strdup("invalid_domain"); }},
    {"a fabric that does not exist",
     [](fi_info& hints) { hints.fabric_attr->name = strdup("192.0.2.254/32"); }},
};

}  // namespace

void check_refused_hints(const LibfabricLibrary& core, Expectations& verdict) {
  for (const Refusal& refusal : kRefusals) {
    const Info hints = new_hints(core.calls);
    refusal.change(*hints);
    const GetinfoResult answer = ask(core.calls, {.version = core.version}, hints.get());
    hints->domain_attr->auth_key_size = 0;
    verdict.expect(answer.error != 0, "%s: refused", refusal.what);
  }
  // A layered provider looks for something to stand on.
  const GetinfoResult layered = ask(core.calls, {.version = core.version, .flags = 1ull << 59}, nullptr);
  verdict.expect(layered.error != 0, "nothing is offered to layers");
}

}  // namespace load
