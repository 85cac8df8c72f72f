// Every field of fi_info: what the hints ask for is in the answer, or is refused.
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>

#include "provider/capabilities.h"
#include "provider/info_compat.h"
#include "unit/provider/info_on_stack.h"

namespace cluster::provider {
namespace {

constexpr std::uint32_t kNewest = FI_VERSION(2, 6);

using Judge = bool (*)(std::uint64_t asked, std::uint64_t given);
bool has_bits(std::uint64_t asked, std::uint64_t given) { return (asked & ~given) == 0; }
bool at_least(std::uint64_t asked, std::uint64_t given) { return given >= asked; }
/// Zero leaves the choice to the provider.
bool the_same(std::uint64_t asked, std::uint64_t given) { return asked == 0 || given == asked; }
/// The caller says what it can live with.
bool no_more_than_permitted(std::uint64_t asked, std::uint64_t given) { return (given & ~asked) == 0; }
/// Managed resources serve applications that manage theirs, too.
bool as_managed(std::uint64_t asked, std::uint64_t given) { return given >= asked && given <= FI_RM_ENABLED; }
/// Old callers put the capabilities of both sides into each.
bool has_bits_to_send(std::uint64_t asked, std::uint64_t given) {
  return has_bits(asked & kTransmitSide, given);
}
bool has_bits_to_receive(std::uint64_t asked, std::uint64_t given) {
  return has_bits(asked & kReceiveSide, given);
}
/// What the answer to a format is that leaves a choice is seen where addresses are (addressing_test.cc, fabtests/load).
bool any(std::uint64_t, std::uint64_t) { return true; }

/// The attributes of one kind in hints and answer.
template <typename Attributes>
struct Pair {
  Attributes& asked;
  Attributes& given;
};

class HintFields : public ::testing::Test {
 public:
  void SetUp() override { renew(); }

  void renew() {
    asked_.emplace();
    given_.emplace();
  }

  Pair<fi_info> info() { return {asked_->info, given_->info}; }
  Pair<fi_tx_attr> tx() { return {asked_->tx, given_->tx}; }
  Pair<fi_rx_attr> rx() { return {asked_->rx, given_->rx}; }
  Pair<fi_ep_attr> ep() { return {asked_->ep, given_->ep}; }
  Pair<fi_domain_attr> domain() { return {asked_->domain.attributes, given_->domain.attributes}; }
  Pair<fi_fabric_attr> fabric() { return {asked_->fabric, given_->fabric}; }

  /// Asks for each value in turn, of both endpoint types. At least one has to be granted.
  template <typename Attributes, typename Field>
  void check(const char* name, Pair<Attributes> (HintFields::*attributes)(), Field Attributes::*field,
             Judge judge) {
    std::set<std::uint64_t> values = {0, 1, 2, 3, 4, 5, 8, 64, 1 << 16, UINT64_MAX};
    for (int bit = 0; bit < 64; ++bit) values.insert(std::uint64_t{1} << bit);
    bool granted = false;
    for (const Capabilities& offer : {kRdmCapabilities, limit_to_frame(kDgramCapabilities, 1472)}) {
      for (const std::uint64_t value : values) {
        renew();
        Pair<Attributes> pair = (this->*attributes)();
        const auto asked = static_cast<std::uint64_t>(static_cast<Field>(value));
        pair.asked.*field = static_cast<Field>(value);
        if (!hint_mismatch(asked_->info, offer, {kNewest, kNewest, 4096, FI_VERSION(1, 0)}).empty()) continue;
        describe(given_->info, offer, kNewest, &asked_->info, kNewest);
        granted |= value != 0;
        EXPECT_TRUE(judge(asked, static_cast<std::uint64_t>(pair.given.*field)))
            << name << ": asked for " << value << ", given " << static_cast<std::uint64_t>(pair.given.*field);
      }
    }
    EXPECT_TRUE(granted || never_granted(name)) << name;
    seen_ += sizeof(Field);
  }
  /// A pointer, or what another test judges, as `where` says.
  template <typename Attributes, typename Field>
  void elsewhere(Field Attributes::*, const char* /*where*/) {
    seen_ += sizeof(Field);
  }
  /// No field is missing above, but for the holes between them.
  template <typename Attributes>
  void all(std::size_t holes) {
    EXPECT_EQ(seen_, sizeof(Attributes) - holes);
  }

 private:
  static bool never_granted(const std::string& name) {
    return name == "comp_order" || name == "total_buffered_recv" || name == "msg_prefix_size" ||
           name == "max_ep_stx_ctx" || name == "max_ep_srx_ctx";
  }

  std::optional<InfoOnStack> asked_;
  std::optional<InfoOnStack> given_;
  std::size_t seen_ = 0;  ///< bytes of the fields
};

TEST_F(HintFields, OfTheInfo) {
  check("caps", &HintFields::info, &fi_info::caps, has_bits);
  check("mode", &HintFields::info, &fi_info::mode, no_more_than_permitted);
  check("addr_format", &HintFields::info, &fi_info::addr_format, any);
  const char* const addresses = "addressing_test.cc";
  elsewhere(&fi_info::src_addr, addresses);
  elsewhere(&fi_info::src_addrlen, addresses);
  elsewhere(&fi_info::dest_addr, addresses);
  elsewhere(&fi_info::dest_addrlen, addresses);
  elsewhere(&fi_info::next, "not read");
  elsewhere(&fi_info::handle, "below");
  elsewhere(&fi_info::nic, "names no restriction");
  const char* const parts = "below";
  elsewhere(&fi_info::tx_attr, parts);
  elsewhere(&fi_info::rx_attr, parts);
  elsewhere(&fi_info::ep_attr, parts);
  elsewhere(&fi_info::domain_attr, parts);
  elsewhere(&fi_info::fabric_attr, parts);
  all<fi_info>(4);
  fid passive{};
  info().asked.handle = &passive;
  EXPECT_NE(hint_mismatch(info().asked, kRdmCapabilities, {kNewest, kNewest, 4096}), "");
}

TEST_F(HintFields, OfTheTransmitSide) {
  check("tx caps", &HintFields::tx, &fi_tx_attr::caps, has_bits_to_send);
  check("tx mode", &HintFields::tx, &fi_tx_attr::mode, no_more_than_permitted);
  check("tx op_flags", &HintFields::tx, &fi_tx_attr::op_flags, has_bits);
  check("tx msg_order", &HintFields::tx, &fi_tx_attr::msg_order, has_bits);
  check("comp_order", &HintFields::tx, &fi_tx_attr::comp_order, has_bits);
  check("inject_size", &HintFields::tx, &fi_tx_attr::inject_size, at_least);
  check("tx size", &HintFields::tx, &fi_tx_attr::size, at_least);
  check("tx iov_limit", &HintFields::tx, &fi_tx_attr::iov_limit, at_least);
  check("rma_iov_limit", &HintFields::tx, &fi_tx_attr::rma_iov_limit, at_least);
  elsewhere(&fi_tx_attr::tclass, "below");
  all<fi_tx_attr>(4);
}

TEST_F(HintFields, OfTheReceiveSide) {
  check("rx caps", &HintFields::rx, &fi_rx_attr::caps, has_bits_to_receive);
  check("rx mode", &HintFields::rx, &fi_rx_attr::mode, no_more_than_permitted);
  check("rx op_flags", &HintFields::rx, &fi_rx_attr::op_flags, has_bits);
  check("rx msg_order", &HintFields::rx, &fi_rx_attr::msg_order, has_bits);
  check("comp_order", &HintFields::rx, &fi_rx_attr::comp_order, has_bits);
  check("total_buffered_recv", &HintFields::rx, &fi_rx_attr::total_buffered_recv, at_least);
  check("rx size", &HintFields::rx, &fi_rx_attr::size, at_least);
  check("rx iov_limit", &HintFields::rx, &fi_rx_attr::iov_limit, at_least);
  all<fi_rx_attr>(0);
}

TEST_F(HintFields, OfTheEndpoint) {
  check("type", &HintFields::ep, &fi_ep_attr::type, the_same);
  check("max_msg_size", &HintFields::ep, &fi_ep_attr::max_msg_size, at_least);
  check("msg_prefix_size", &HintFields::ep, &fi_ep_attr::msg_prefix_size, at_least);
  check("max_order_raw_size", &HintFields::ep, &fi_ep_attr::max_order_raw_size, at_least);
  check("max_order_war_size", &HintFields::ep, &fi_ep_attr::max_order_war_size, at_least);
  check("max_order_waw_size", &HintFields::ep, &fi_ep_attr::max_order_waw_size, at_least);
  check("mem_tag_format", &HintFields::ep, &fi_ep_attr::mem_tag_format, the_same);
  check("tx_ctx_cnt", &HintFields::ep, &fi_ep_attr::tx_ctx_cnt, at_least);
  check("rx_ctx_cnt", &HintFields::ep, &fi_ep_attr::rx_ctx_cnt, at_least);
  check("protocol_version", &HintFields::ep, &fi_ep_attr::protocol_version, at_least);
  elsewhere(&fi_ep_attr::protocol, "below");
  elsewhere(&fi_ep_attr::auth_key_size, "hints_test.cc");
  elsewhere(&fi_ep_attr::auth_key, "hints_test.cc");
  all<fi_ep_attr>(4);
}

TEST_F(HintFields, OfTheDomain) {
  check("threading", &HintFields::domain, &fi_domain_attr::threading, the_same);
  check("control_progress", &HintFields::domain, &fi_domain_attr::control_progress, the_same);
  check("data_progress", &HintFields::domain, &fi_domain_attr::data_progress, the_same);
  check("resource_mgmt", &HintFields::domain, &fi_domain_attr::resource_mgmt, as_managed);
  check("av_type", &HintFields::domain, &fi_domain_attr::av_type, the_same);
  check("mr_mode", &HintFields::domain, &fi_domain_attr::mr_mode, no_more_than_permitted);
  check("mr_key_size", &HintFields::domain, &fi_domain_attr::mr_key_size, at_least);
  check("cq_data_size", &HintFields::domain, &fi_domain_attr::cq_data_size, at_least);
  check("cq_cnt", &HintFields::domain, &fi_domain_attr::cq_cnt, at_least);
  check("ep_cnt", &HintFields::domain, &fi_domain_attr::ep_cnt, at_least);
  check("tx_ctx_cnt", &HintFields::domain, &fi_domain_attr::tx_ctx_cnt, at_least);
  check("rx_ctx_cnt", &HintFields::domain, &fi_domain_attr::rx_ctx_cnt, at_least);
  check("max_ep_tx_ctx", &HintFields::domain, &fi_domain_attr::max_ep_tx_ctx, at_least);
  check("max_ep_rx_ctx", &HintFields::domain, &fi_domain_attr::max_ep_rx_ctx, at_least);
  check("max_ep_stx_ctx", &HintFields::domain, &fi_domain_attr::max_ep_stx_ctx, at_least);
  check("max_ep_srx_ctx", &HintFields::domain, &fi_domain_attr::max_ep_srx_ctx, at_least);
  check("cntr_cnt", &HintFields::domain, &fi_domain_attr::cntr_cnt, at_least);
  check("mr_iov_limit", &HintFields::domain, &fi_domain_attr::mr_iov_limit, at_least);
  check("domain caps", &HintFields::domain, &fi_domain_attr::caps, has_bits);
  check("domain mode", &HintFields::domain, &fi_domain_attr::mode, no_more_than_permitted);
  check("max_err_data", &HintFields::domain, &fi_domain_attr::max_err_data, at_least);
  check("mr_cnt", &HintFields::domain, &fi_domain_attr::mr_cnt, at_least);
  elsewhere(&fi_domain_attr::tclass, "below");
  elsewhere(&fi_domain_attr::auth_key_size, "hints_test.cc");
  elsewhere(&fi_domain_attr::auth_key, "hints_test.cc");
  elsewhere(&fi_domain_attr::name, "interface_addresses_test.cc");
  elsewhere(&fi_domain_attr::domain, "fabtests/conformance: Getinfo");
  all<fi_domain_attr>(4);
}

TEST_F(HintFields, OfTheFabric) {
  check("prov_version", &HintFields::fabric, &fi_fabric_attr::prov_version, any);  // the answer is the core's
  elsewhere(&fi_fabric_attr::api_version, "the core's: it is the version that the caller names");
  elsewhere(&fi_fabric_attr::prov_name, "the core's");
  elsewhere(&fi_fabric_attr::name, "interface_addresses_test.cc");
  elsewhere(&fi_fabric_attr::fabric, "fabtests/conformance: Getinfo");
  all<fi_fabric_attr>(0);
}

TEST_F(HintFields, ValuesOfTheirOwn) {
  const auto reason = [&] {
    return hint_mismatch(info().asked, kRdmCapabilities, {kNewest, kNewest, 4096, FI_VERSION(1, 3)});
  };
  tx().asked.tclass = FI_TC_LOW_LATENCY;  // as libfabric's own benchmarks do: the answer says what there is
  domain().asked.tclass = FI_TC_BULK_DATA;
  EXPECT_EQ(reason(), "");
  describe(info().given, kRdmCapabilities, kNewest, &info().asked, kNewest);
  EXPECT_EQ(tx().given.tclass, std::uint32_t{FI_TC_BEST_EFFORT});
  EXPECT_EQ(domain().given.tclass, std::uint32_t{FI_TC_BEST_EFFORT});
  ep().asked.protocol = kProtocol;
  EXPECT_EQ(reason(), "");
  EXPECT_EQ(ep().given.protocol, kProtocol);
  ep().asked.protocol = FI_PROTO_UDP;
  EXPECT_NE(reason(), "");
  ep().asked.protocol = FI_PROTO_UNSPEC;
  fabric().asked.prov_version = FI_VERSION(1, 3);
  EXPECT_EQ(reason(), "");
  fabric().asked.prov_version = FI_VERSION(1, 4);
  EXPECT_NE(reason(), "");
}

TEST_F(HintFields, TheAnswerHasTheFieldsOfTheTagFormatAskedFor) {
  constexpr std::uint64_t kMpi = 1;  // FI_TAG_MPI and FI_TAG_CCL, since 2.0
  constexpr std::uint64_t kCcl = 2;
  constexpr std::uint64_t kThreeFields = 0x30FF;  // the example of fi_endpoint(3)
  for (const std::uint64_t asked : {kMpi, kCcl, kThreeFields, 0xFFFF0000FFFFFFFF}) {
    ep().asked.mem_tag_format = asked;
    ASSERT_EQ(hint_mismatch(info().asked, kRdmCapabilities, {kNewest, kNewest, 4096}), "");
    describe(info().given, kRdmCapabilities, kNewest, &info().asked, kNewest);
    EXPECT_EQ(ep().given.mem_tag_format, asked);
  }
  ep().asked.mem_tag_format = 0;  // FI_TAG_BITS
  describe(info().given, kRdmCapabilities, kNewest, &info().asked, kNewest);
  EXPECT_EQ(ep().given.mem_tag_format, kTagFormat) << "all 64 bits are free";
}

TEST_F(HintFields, WhatOneSideAsksForTheEndpointHas) {
  info().asked.caps = FI_MSG;
  tx().asked.caps = FI_MSG | FI_TAGGED | FI_FENCE;
  rx().asked.caps = FI_MSG | FI_SOURCE;
  ASSERT_EQ(hint_mismatch(info().asked, kRdmCapabilities, {kNewest, kNewest, 4096}), "");
  describe(info().given, kRdmCapabilities, kNewest, &info().asked, kNewest);
  EXPECT_EQ(info().given.caps, FI_MSG | FI_TAGGED | FI_FENCE | FI_SOURCE | kDirectionCaps | kDomainCaps);
  EXPECT_EQ(tx().given.caps, FI_MSG | FI_TAGGED | FI_FENCE | FI_SEND);
  EXPECT_EQ(rx().given.caps, FI_MSG | FI_SOURCE | FI_RECV);
}

TEST_F(HintFields, AReceiverMayAskForGroups) {
  info().asked.caps = FI_MSG;
  rx().asked.caps = FI_MSG | FI_MULTICAST;
  ASSERT_EQ(hint_mismatch(info().asked, kRdmCapabilities, {kNewest, kNewest, 4096}), "");
  describe(info().given, kRdmCapabilities, kNewest, &info().asked, kNewest);
  EXPECT_TRUE(info().given.caps & FI_MULTICAST);
  EXPECT_EQ(rx().given.caps, FI_MSG | FI_RECV) << "libfabric lists FI_MULTICAST for the sender";
  EXPECT_NE(hint_mismatch(info().asked, kDgramCapabilities, {kNewest, kNewest, 4096}).find("rx_attr->caps"),
            std::string::npos);
}

}  // namespace
}  // namespace cluster::provider
