// What the provider offers, and what it refuses to promise. fi_getinfo(3)
#include <arpa/inet.h>
#include <netinet/in.h>

#include "fabric.h"

namespace conformance {
namespace {

int ask(const fi_info* hints, std::uint32_t version = kApiVersion, const char* node = nullptr,
        const char* service = nullptr, std::uint64_t flags = 0) {
  fi_info* list = nullptr;
  const int result = fi_getinfo(version, node, service, flags, hints, &list);
  fi_freeinfo(list);
  return result;
}

Info first(const fi_info* hints, std::uint32_t version = kApiVersion) {
  fi_info* list = nullptr;
  EXPECT_EQ(fi_getinfo(version, nullptr, nullptr, 0, hints, &list), 0);
  return Info(list);
}

Info plain_hints() {
  Info hints(fi_allocinfo());
  hints->fabric_attr->prov_name = strdup(provider_under_test().c_str());
  return hints;
}

SINGLE_TEST(Getinfo, AnswersWithoutHints) {
  fi_info* list = nullptr;
  ASSERT_EQ(fi_getinfo(kApiVersion, nullptr, nullptr, 0, nullptr, &list), 0);
  const Info info(list);
  for (const fi_info* each = list; each != nullptr; each = each->next) {
    EXPECT_EQ(each->mode, 0u);
    ASSERT_NE(each->fabric_attr->name, nullptr);
    ASSERT_NE(each->domain_attr->name, nullptr);
    EXPECT_EQ(each->fabric_attr->prov_name, provider_under_test());
    EXPECT_NE(each->src_addr, nullptr);
  }
}

SINGLE_TEST(Getinfo, AnswersCallersOfEveryApiVersion) {
  for (const unsigned minor : {5u, 6u, 8u, 9u, 10u, 13u, 15u, FI_MINOR(fi_version())}) {
    const Info hints = plain_hints();
    hints->caps = FI_MSG | FI_TAGGED;
    hints->ep_attr->type = FI_EP_RDM;
    EXPECT_EQ(ask(hints.get(), FI_VERSION(FI_MAJOR(fi_version()) == 1 ? 1u : 1u, minor)), 0) << "1." << minor;
  }
}

SINGLE_TEST(Getinfo, PromisesOnlyTheCapabilitiesAskedFor) {
  constexpr std::uint64_t kPrimary = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_MULTICAST |
                                     FI_DIRECTED_RECV | FI_NAMED_RX_CTX | FI_HMEM | FI_COLLECTIVE;
  for (const std::uint64_t caps :
       {std::uint64_t{FI_MSG}, std::uint64_t{FI_TAGGED}, std::uint64_t{FI_MSG | FI_TAGGED},
        std::uint64_t{FI_TAGGED | FI_DIRECTED_RECV}}) {
    const Info hints = plain_hints();
    hints->caps = caps;
    const Info info = first(hints.get());
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(info->caps & kPrimary, caps) << fi_tostr(&info->caps, FI_TYPE_CAPS);
    EXPECT_EQ(info->caps & (FI_SEND | FI_RECV), std::uint64_t{FI_SEND | FI_RECV});
    EXPECT_EQ(info->tx_attr->caps & (FI_RECV | FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV), 0u);
    EXPECT_EQ(info->rx_attr->caps & FI_SEND, 0u);
  }
}

SINGLE_TEST(Getinfo, GivesBackWhatWasAskedFor) {
  for (const fi_threading threading :
       {FI_THREAD_SAFE, FI_THREAD_DOMAIN, FI_THREAD_COMPLETION, FI_THREAD_FID}) {
    const Info hints = plain_hints();
    hints->domain_attr->threading = threading;
    EXPECT_EQ(first(hints.get())->domain_attr->threading, threading);
  }
  for (const fi_av_type type : {FI_AV_MAP, FI_AV_TABLE}) {
    const Info hints = plain_hints();
    hints->domain_attr->av_type = type;
    EXPECT_EQ(first(hints.get())->domain_attr->av_type, type);
  }
  const Info hints = plain_hints();
  hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
  hints->ep_attr->mem_tag_format = 0x30FF;
  const Info info = first(hints.get());
  EXPECT_EQ(info->domain_attr->control_progress, FI_PROGRESS_MANUAL);
  EXPECT_EQ(info->domain_attr->data_progress, FI_PROGRESS_MANUAL);
  EXPECT_EQ(info->tx_attr->op_flags, std::uint64_t{FI_DELIVERY_COMPLETE});
  EXPECT_EQ(info->ep_attr->mem_tag_format, 0x30FFu);
}

SINGLE_TEST(Getinfo, OffersWhatMpiNeeds) {
  const Info info = first(make_hints({}).get());
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->ep_attr->type, FI_EP_RDM);
  EXPECT_EQ(info->addr_format, std::uint32_t{FI_SOCKADDR_IN});
  EXPECT_EQ(info->domain_attr->cq_data_size, 8u);
  EXPECT_GE(info->tx_attr->iov_limit, 8u);
  EXPECT_GE(info->rx_attr->iov_limit, 8u);
  EXPECT_GE(info->tx_attr->inject_size, 16u);
  EXPECT_GE(info->ep_attr->max_msg_size, std::size_t{1} << 40);
  EXPECT_NE(info->tx_attr->msg_order & FI_ORDER_SAS, 0u);
  EXPECT_EQ(info->ep_attr->mem_tag_format >> 63, 1u);
}

SINGLE_TEST(Getinfo, NamesItsSource) {
  const Info info = get_info({});
  ASSERT_NE(info, nullptr);
  ASSERT_NE(info->src_addr, nullptr);
  ASSERT_EQ(info->src_addrlen, sizeof(sockaddr_in));
  sockaddr_in in;
  std::memcpy(&in, info->src_addr, sizeof in);
  EXPECT_EQ(in.sin_family, AF_INET);
  EXPECT_NE(in.sin_addr.s_addr, htonl(INADDR_ANY));
}

SINGLE_TEST(Getinfo, ResolvesTheDestination) {
  const Info hints = make_hints({});
  fi_info* list = nullptr;
  ASSERT_EQ(fi_getinfo(kApiVersion, "127.0.0.1", "9229", 0, hints.get(), &list), 0);
  const Info info(list);
  ASSERT_NE(info->dest_addr, nullptr);
  sockaddr_in in;
  std::memcpy(&in, info->dest_addr, sizeof in);
  EXPECT_EQ(in.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  EXPECT_EQ(in.sin_port, htons(9229));
}

SINGLE_TEST(Getinfo, AcceptsItsOwnAnswerAsHints) {
  const Info info = get_info({});
  ASSERT_NE(info, nullptr);
  const Info hints(fi_dupinfo(info.get()));
  EXPECT_EQ(ask(hints.get()), 0);
}

SINGLE_TEST(Getinfo, RefusesWhatItCannotKeep) {
  const auto refused = [](const char* what, const std::function<void(fi_info&)>& spoil) {
    const Info hints = make_hints({});
    spoil(*hints);
    EXPECT_EQ(ask(hints.get()), -FI_ENODATA) << what;
  };
  refused("stream endpoints", [](fi_info& i) { i.ep_attr->type = FI_EP_SOCK_STREAM; });
  refused("too much completion data", [](fi_info& i) { i.domain_attr->cq_data_size = 9; });
  refused("too much inject", [](fi_info& i) { i.tx_attr->inject_size = std::size_t{1} << 40; });
  refused("too many pieces to send", [](fi_info& i) { i.tx_attr->iov_limit = 1000; });
  refused("too many pieces to receive", [](fi_info& i) { i.rx_attr->iov_limit = 1000; });
  refused("another domain", [](fi_info& i) { i.domain_attr->name = strdup("no such domain"); });
  refused("another fabric", [](fi_info& i) { i.fabric_attr->name = strdup("no such fabric"); });
  refused("another address format", [](fi_info& i) { i.addr_format = FI_ADDR_PSMX2; });
  refused("another protocol", [](fi_info& i) { i.ep_attr->protocol = FI_PROTO_PSMX2; });
}

SINGLE_TEST(Getinfo, AnswersForTheDomainThatIsOpen) {
  const Domain opened;
  const Info hints = make_hints({});
  hints->fabric_attr->fabric = opened.fabric();
  hints->domain_attr->domain = opened.domain();
  const Info info = first(hints.get());
  ASSERT_NE(info, nullptr);
  EXPECT_STREQ(info->domain_attr->name, opened.info()->domain_attr->name);
  if (provider_under_test() != "cluster") return;
  // Open MPI 5 takes a domain in the answer for one that its message layer shares with its one-sided layer, and fails.
  EXPECT_EQ(info->domain_attr->domain, nullptr);
  hints->domain_attr->name = strdup("another");
  EXPECT_EQ(ask(hints.get()), -FI_ENODATA);
}

SINGLE_TEST(Getinfo, RefusesObjectsOfOtherProviders) {
  fid_domain domain{};
  fid_fabric fabric{};
  const Info hints = make_hints({});
  hints->domain_attr->domain = &domain;
  if (provider_under_test() == "cluster") {
    EXPECT_EQ(ask(hints.get()), -FI_ENODATA);
  }
  hints->domain_attr->domain = nullptr;
  hints->fabric_attr->fabric = &fabric;
  if (provider_under_test() == "cluster") {
    EXPECT_EQ(ask(hints.get()), -FI_ENODATA);
  }
}

/// As the host's own name in /etc/hosts: no interface lists the address, and it is this node's all the same.
SINGLE_TEST(Getinfo, KnowsAnAddressThatIsLocalByARoute) {
  const Info hints = make_hints({});
  fi_info* list = nullptr;
  ASSERT_EQ(fi_getinfo(kApiVersion, "127.0.1.1", nullptr, FI_SOURCE, hints.get(), &list), 0);
  const Info info(list);
  sockaddr_in in{};
  ASSERT_EQ(info->src_addrlen, sizeof in);
  std::memcpy(&in, info->src_addr, sizeof in);
  EXPECT_EQ(in.sin_addr.s_addr, inet_addr("127.0.1.1"));
}

SINGLE_TEST(Getinfo, RefusesNodesThatDoNotExist) {
  const Info hints = make_hints({});
  EXPECT_NE(ask(hints.get(), kApiVersion, "300.400.500.600", "9228"), 0);
  EXPECT_NE(ask(hints.get(), kApiVersion, "no-such-node.invalid", "9228", FI_NUMERICHOST), 0);
  EXPECT_NE(ask(hints.get(), kApiVersion, "198.51.100.1", "9228", FI_SOURCE), 0)
      << "not an address of this node";
  EXPECT_NE(ask(hints.get(), kApiVersion, nullptr, nullptr, FI_SOURCE), 0);
}

SINGLE_TEST(Getinfo, DescribesTheNetworkCardAlsoInACopy) {
  const Info info = first(plain_hints().get());
  ASSERT_NE(info, nullptr);
  const Info copy(fi_dupinfo(info.get()));
  for (const fi_info* each : {info.get(), copy.get()}) {
    ASSERT_NE(each->nic, nullptr);
    EXPECT_EQ(each->nic->fid.fclass, static_cast<std::size_t>(FI_CLASS_NIC));
    EXPECT_STREQ(each->nic->device_attr->name, info->domain_attr->name);
    EXPECT_GE(each->nic->link_attr->mtu, 1280u);
    EXPECT_EQ(each->nic->link_attr->state, FI_LINK_UP);
    if (each->nic->link_attr->address != nullptr) {
      EXPECT_EQ(std::strlen(each->nic->link_attr->address), std::strlen("01:23:45:67:89:ab"));
      EXPECT_STREQ(each->nic->link_attr->network_type, "Ethernet");
    }
    const std::string text = fi_tostr(each, FI_TYPE_INFO);
    EXPECT_NE(text.find("fi_link_attr"), std::string::npos) << text;
  }
  EXPECT_NE(copy->nic, info->nic);
  EXPECT_EQ(ask(copy.get()), 0) << "an answer serves as hints";
}

}  // namespace
}  // namespace conformance
