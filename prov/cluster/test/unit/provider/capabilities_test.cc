// The fi_info that is returned: capabilities as asked, models as asked, new fields of fi_domain_attr only if
// the core has them.
#include "provider/capabilities.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "provider/info_compat.h"
#include "unit/provider/info_on_stack.h"

namespace cluster::provider {
namespace {

constexpr std::uint32_t kOldest = FI_VERSION(1, 17);

class CapabilitiesTest : public ::testing::Test {
 protected:
  void answer(std::uint32_t version = kOldest, std::uint32_t core = kOldest) {
    describe(out.info, kRdmCapabilities, version, &hints.info, core);
  }

  InfoOnStack hints;
  InfoOnStack out;
};

TEST_F(CapabilitiesTest, WithoutHintsPrimaryCapabilitiesAreGranted) {
  describe(out.info, kRdmCapabilities, kOldest, nullptr, kOldest);
  EXPECT_EQ(out.info.caps, kPrimaryCaps | kDomainCaps);
  EXPECT_EQ(out.tx.caps, kPrimaryCaps & kTransmitSide);
  EXPECT_EQ(out.rx.caps, kPrimaryCaps & kReceiveSide);
  EXPECT_EQ(out.domain.attributes.mr_mode, 0);
}

TEST_F(CapabilitiesTest, PrimaryCapabilitiesOnlyWhenAsked) {
  hints.info.caps = FI_TAGGED;
  answer();
  EXPECT_EQ(out.info.caps, FI_TAGGED | FI_SEND | FI_RECV | kDomainCaps);
  EXPECT_EQ(out.tx.caps, FI_TAGGED | FI_SEND);
  EXPECT_EQ(out.rx.caps, FI_TAGGED | FI_RECV);
  hints.info.caps = FI_MSG | FI_RECV | FI_SOURCE | FI_DIRECTED_RECV;
  answer();
  EXPECT_EQ(out.info.caps & FI_SEND, 0u);
  EXPECT_EQ(out.rx.caps, FI_MSG | FI_RECV | FI_SOURCE | FI_DIRECTED_RECV);
}

TEST_F(CapabilitiesTest, EachSideHasTheGrantedBitsOfItsSide) {
  for (std::uint64_t bits = 0; bits < 1u << 12; ++bits) {
    hints.info.caps = bits & kCaps;
    answer();
    EXPECT_EQ(out.tx.caps & ~(kTransmitSide & out.info.caps), 0u);
    EXPECT_EQ(out.rx.caps & ~(kReceiveSide & out.info.caps), 0u);
    EXPECT_EQ(hints.info.caps & ~out.info.caps, 0u);
  }
}

/// What libfabric knows of capabilities and operation flags (include/ofi.h), since a version.
struct CapabilityTable {
  std::uint32_t since;
  std::uint64_t transmit;
  std::uint64_t receive;
  std::uint64_t domain;
};
constexpr std::uint64_t kTransmitOfAll = FI_MSG | FI_RMA | FI_TAGGED | FI_ATOMIC | FI_MULTICAST | FI_READ |
                                         FI_WRITE | FI_SEND | FI_COLLECTIVE | FI_NAMED_RX_CTX | FI_HMEM |
                                         FI_TRIGGER | FI_FENCE | FI_RMA_PMEM;
constexpr std::uint64_t kReceiveOfAll = FI_MSG | FI_RMA | FI_TAGGED | FI_ATOMIC | FI_REMOTE_READ |
                                        FI_REMOTE_WRITE | FI_RECV | FI_DIRECTED_RECV | FI_COLLECTIVE |
                                        FI_HMEM | FI_MULTI_RECV | FI_TRIGGER | FI_RMA_PMEM | FI_SOURCE |
                                        FI_RMA_EVENT | FI_SOURCE_ERR;
constexpr std::uint64_t kDomainOfAll = FI_REMOTE_COMM | FI_LOCAL_COMM | FI_SHARED_AV;
constexpr std::uint64_t kAvUserId = 1ull << 41;
constexpr std::uint64_t kReceiveOfNew =
    api::kTaggedDirectedRecv | api::kTaggedMultiRecv | api::kExactDirectedRecv;
constexpr std::uint64_t kPeer = 1ull << 43;
constexpr CapabilityTable kTables[] = {
    {FI_VERSION(1, 17), kTransmitOfAll, kReceiveOfAll | FI_VARIABLE_MSG, kDomainOfAll},
    {FI_VERSION(1, 20), kTransmitOfAll, kReceiveOfAll | FI_VARIABLE_MSG, kDomainOfAll | kAvUserId},
    {FI_VERSION(1, 21), kTransmitOfAll, kReceiveOfAll, kDomainOfAll | kAvUserId},
    {FI_VERSION(2, 0), kTransmitOfAll, kReceiveOfAll | kReceiveOfNew, kDomainOfAll | kAvUserId | kPeer},
};
constexpr std::uint64_t kTransmitFlagsOfAll = FI_COMMIT_COMPLETE | FI_COMPLETION | FI_DELIVERY_COMPLETE |
                                              FI_INJECT | FI_INJECT_COMPLETE | FI_MULTICAST |
                                              FI_TRANSMIT_COMPLETE;
constexpr std::uint64_t kReceiveFlagsOfAll = FI_COMPLETION | FI_MULTI_RECV;

/// Sanitizers are slow, so they see each seventh combination.
#ifdef CLUSTER_SANITIZED
constexpr unsigned kStride = 7;
#else
constexpr unsigned kStride = 1;
#endif

TEST_F(CapabilitiesTest, LieInLibfabricsTableOfEachVersion) {
  constexpr std::uint64_t kNamed[] = {FI_MSG,           FI_TAGGED, FI_RMA,        FI_ATOMIC,     FI_MULTICAST,
                                      FI_COLLECTIVE,    FI_SOURCE, FI_SOURCE_ERR, FI_RMA_EVENT,  FI_FENCE,
                                      FI_DIRECTED_RECV, FI_SEND,   FI_RECV,       FI_MULTI_RECV, FI_READ,
                                      FI_REMOTE_WRITE,  kAvUserId, kReceiveOfNew};
  for (const CapabilityTable& table : kTables) {
    for (const Capabilities& offer : {kRdmCapabilities, kDgramCapabilities}) {
      EXPECT_EQ(offer.transmit_flags & ~kTransmitFlagsOfAll, 0u);
      EXPECT_EQ((offer.caps & kTransmitSide) & ~table.transmit, 0u);
      for (unsigned chosen = 0; chosen < 1u << std::size(kNamed); chosen += kStride) {
        std::uint64_t asked = 0;
        for (std::size_t i = 0; i < std::size(kNamed); ++i) asked |= (chosen >> i & 1) != 0 ? kNamed[i] : 0;
        hints.info.caps = asked;
        if (!hint_mismatch(hints.info, offer, {table.since, table.since, 4096}).empty()) continue;
        describe(out.info, offer, table.since, asked == 0 ? nullptr : &hints.info, table.since);
        ASSERT_EQ(out.info.caps & ~(table.transmit | table.receive | table.domain), 0u) << asked;
        ASSERT_EQ(out.tx.caps, out.info.caps & table.transmit) << asked;
        ASSERT_EQ(out.rx.caps, out.info.caps & table.receive) << asked;
        ASSERT_EQ(out.domain.attributes.caps & ~table.domain, 0u) << asked;
      }
    }
  }
  EXPECT_EQ(kReceiveOpFlags & ~kReceiveFlagsOfAll, 0u);
}

TEST_F(CapabilitiesTest, EachCapabilityThatLibfabricListsHasOneRow) {
  EXPECT_EQ(kTransmitSide, std::end(kTables)[-1].transmit);
  EXPECT_EQ(kReceiveSide, std::end(kTables)[-1].receive);
  std::uint64_t seen = 0;
  for (const CapabilityRow& row : kCapabilityTable) {
    EXPECT_EQ(std::popcount(row.bit), 1);
    EXPECT_EQ(seen & row.bit, 0u);
    EXPECT_EQ((kDomainSide & row.bit) != 0, row.side == kNoSide && row.grant != Grant::never) << row.name;
    seen |= row.bit;
  }
}

TEST_F(CapabilitiesTest, NewerCapabilitiesAreGrantedOnlyToCallersThatKnowThem) {
  hints.info.caps = FI_TAGGED | kReceiveOfNew;
  hints.domain.attributes.caps = kAvUserId;
  for (const std::uint32_t version : {FI_VERSION(2, 0), FI_VERSION(2, 6)}) {
    EXPECT_EQ(hint_mismatch(hints.info, kRdmCapabilities, {version, version, 4096}), "");
    answer(version, version);
    EXPECT_EQ(out.rx.caps, FI_TAGGED | FI_RECV | kReceiveOfNew);
    EXPECT_EQ(out.info.caps & kAvUserId, kAvUserId);
    EXPECT_EQ(out.domain.attributes.caps, kDomainCaps | kAvUserId);
  }
  for (const std::uint64_t bit : {api::kTaggedDirectedRecv, api::kTaggedMultiRecv, api::kExactDirectedRecv}) {
    hints.info.caps = FI_TAGGED | bit;
    EXPECT_NE(hint_mismatch(hints.info, kRdmCapabilities, {FI_VERSION(1, 22), kOldest, 4096}), "") << bit;
  }
  hints.info.caps = FI_TAGGED;
  EXPECT_NE(hint_mismatch(hints.info, kRdmCapabilities, {FI_VERSION(1, 19), kOldest, 4096}), "");
}

TEST_F(CapabilitiesTest, FreeOrdersAreAlwaysGrantedOthersOnRequest) {
  answer();
  EXPECT_EQ(out.tx.msg_order, kFreeOrder);
  hints.tx.msg_order = FI_ORDER_WAW | FI_ORDER_RMA_RAR;
  answer();
  EXPECT_EQ(out.tx.msg_order, kFreeOrder | FI_ORDER_WAW | FI_ORDER_RMA_RAR);
  EXPECT_EQ(out.rx.msg_order, kFreeOrder);
  EXPECT_EQ(out.ep.max_order_waw_size, SIZE_MAX);
}

TEST_F(CapabilitiesTest, OneSideMayAskForLess) {
  hints.info.caps = FI_MSG | FI_TAGGED;
  hints.tx.caps = FI_MSG;
  answer();
  EXPECT_EQ(out.tx.caps, FI_MSG | FI_SEND);
  EXPECT_EQ(out.rx.caps, FI_MSG | FI_TAGGED | FI_RECV);
}

TEST_F(CapabilitiesTest, DatagramsHaveNoOrderAndFitAFrame) {
  describe(out.info, limit_to_frame(kDgramCapabilities, 1472), kOldest, nullptr, kOldest);
  EXPECT_EQ(out.ep.type, FI_EP_DGRAM);
  EXPECT_EQ(out.ep.max_msg_size, 1472 - wire::kDatagramHeaderMax);
  EXPECT_EQ(out.info.caps, FI_MSG | FI_SEND | FI_RECV | FI_DIRECTED_RECV | kDomainCaps);
  EXPECT_EQ(out.tx.msg_order | out.rx.msg_order, FI_ORDER_NONE);
  EXPECT_EQ(out.tx.rma_iov_limit, 0u);
  EXPECT_EQ(limit_to_frame(kDgramCapabilities, 10).message_max, 0u);
  EXPECT_EQ(limit_to_frame(kRdmCapabilities, 1472).message_max, kMessageMax);
}

TEST_F(CapabilitiesTest, ThreadingAndProgressAreReturnedAsAsked) {
  fi_domain_attr& domain = hints.domain.attributes;
  domain.threading = FI_THREAD_DOMAIN;
  domain.control_progress = FI_PROGRESS_AUTO;
  domain.av_type = FI_AV_TABLE;
  hints.tx.op_flags = FI_DELIVERY_COMPLETE;
  hints.tx.size = 17;
  answer();
  EXPECT_EQ(out.domain.attributes.threading, FI_THREAD_DOMAIN);
  EXPECT_EQ(out.domain.attributes.control_progress, FI_PROGRESS_AUTO);
  EXPECT_EQ(out.domain.attributes.data_progress, FI_PROGRESS_MANUAL);
  EXPECT_EQ(out.domain.attributes.av_type, FI_AV_TABLE);
  domain.data_progress = FI_PROGRESS_AUTO;
  answer();
  EXPECT_EQ(out.domain.attributes.data_progress, FI_PROGRESS_AUTO);
  EXPECT_EQ(out.tx.op_flags, FI_DELIVERY_COMPLETE);
  EXPECT_EQ(out.rx.op_flags, 0u);
  EXPECT_EQ(out.tx.size, 17u);
  EXPECT_EQ(out.rx.size, kQueueSize);
}

TEST_F(CapabilitiesTest, RegistrationModesOfOldAndNewCallers) {
  const auto mode = [&](std::uint32_t version, int asked) {
    hints.domain.attributes.mr_mode = asked;
    answer(version);
    return out.domain.attributes.mr_mode;
  };
  EXPECT_EQ(mode(FI_VERSION(1, 0), 0), static_cast<int>(FI_MR_SCALABLE));
  EXPECT_EQ(mode(FI_VERSION(1, 4), FI_MR_BASIC), static_cast<int>(FI_MR_BASIC));
  EXPECT_EQ(mode(kOldest, FI_MR_BASIC), static_cast<int>(FI_MR_BASIC));
  EXPECT_EQ(mode(kOldest, FI_MR_SCALABLE), static_cast<int>(FI_MR_SCALABLE));
  EXPECT_EQ(mode(kOldest, FI_MR_LOCAL | FI_MR_VIRT_ADDR), 0);
  EXPECT_EQ(mode(kOldest, FI_MR_PROV_KEY | FI_MR_LOCAL), 0);
  EXPECT_EQ(mode(kOldest, FI_MR_PROV_KEY | FI_MR_ALLOCATED), 0);
  const int basic = FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED;
  EXPECT_EQ(mode(kOldest, basic), basic);
  EXPECT_EQ(mode(kOldest, ~3), basic);
}

TEST_F(CapabilitiesTest, NewFieldsAreWrittenOnlyIfTheCoreHasThem) {
  const auto tail_untouched = [&] {
    return std::all_of(std::begin(out.domain.tail), std::end(out.domain.tail),
                       [](std::byte b) { return b == std::byte{0}; });
  };
  answer(kOldest, kOldest);
  EXPECT_TRUE(tail_untouched());
  answer(FI_VERSION(2, 4), FI_VERSION(2, 4));
  EXPECT_EQ(kMaxEpAuthKey.read(out.domain.attributes, FI_VERSION(2, 4)), 0u);
  EXPECT_EQ(kMaxCounterValue.read(out.domain.attributes, FI_VERSION(2, 5)), 0u);
  EXPECT_EQ(kMaxErrorCounterValue.read(out.domain.attributes, FI_VERSION(2, 5)), 0u);
  answer(FI_VERSION(2, 5), FI_VERSION(2, 5));
  EXPECT_EQ(kMaxCounterValue.read(out.domain.attributes, FI_VERSION(2, 5)), UINT64_MAX);
  EXPECT_EQ(kMaxErrorCounterValue.read(out.domain.attributes, FI_VERSION(2, 5)), UINT64_MAX);
}

TEST_F(CapabilitiesTest, TheAnswerIsAcceptedAsHints) {
  for (const std::uint32_t version :
       std::initializer_list<std::uint32_t>{FI_VERSION(1, 0), FI_VERSION(1, 5), kOldest, FI_VERSION(2, 5)}) {
    for (const Capabilities& offer : {kRdmCapabilities, limit_to_frame(kDgramCapabilities, 1472)}) {
      describe(out.info, offer, version, nullptr, version);
      EXPECT_EQ(hint_mismatch(out.info, offer, GetinfoCaller{version, version, 4096}), "");
    }
  }
}

}  // namespace
}  // namespace cluster::provider
