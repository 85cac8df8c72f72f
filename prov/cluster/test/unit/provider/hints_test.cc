// Hints against capabilities: each mismatch is refused by name, and nothing that consumers rely on is
// refused.
#include <gtest/gtest.h>

#include "api/auth_key.h"
#include "provider/capabilities.h"
#include "provider/info_compat.h"
#include "unit/provider/info_on_stack.h"

namespace cluster::provider {
namespace {

constexpr std::uint32_t kNew = FI_VERSION(2, 5);
constexpr std::uint32_t kOldVersion = FI_VERSION(1, 17);

class Hints : public ::testing::Test, protected InfoOnStack {
 protected:
  std::string reason(std::uint32_t version = kOldVersion, std::uint32_t core = kOldVersion) const {
    return hint_mismatch(info, kRdmCapabilities, GetinfoCaller{version, core, 4096});
  }
  std::string datagram_reason() const {
    return hint_mismatch(info, limit_to_frame(kDgramCapabilities, 1472),
                         GetinfoCaller{kOldVersion, kOldVersion, 4096});
  }
};

TEST_F(Hints, EmptyHintsMatch) { EXPECT_EQ(reason(), ""); }

TEST_F(Hints, PartsMayBeMissing) {
  info.tx_attr = nullptr;
  info.rx_attr = nullptr;
  info.ep_attr = nullptr;
  info.domain_attr = nullptr;
  info.fabric_attr = nullptr;
  info.caps = FI_MSG;
  EXPECT_EQ(reason(), "");
}

TEST_F(Hints, OpenMpisHintsMatch) {
  info.mode = FI_CONTEXT | FI_CONTEXT2;
  info.caps = FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV;
  tx.msg_order = rx.msg_order = FI_ORDER_SAS;
  tx.op_flags = rx.op_flags = FI_COMPLETION;
  ep.type = FI_EP_RDM;
  domain.attributes.threading = FI_THREAD_DOMAIN;
  domain.attributes.cq_data_size = 4;
  domain.attributes.av_type = FI_AV_MAP;
  domain.attributes.resource_mgmt = FI_RM_ENABLED;
  EXPECT_EQ(reason(FI_VERSION(1, 5)), "");
}

TEST_F(Hints, UnsupportedCapabilitiesAreRefused) {
  for (int bit = 0; bit < 64; ++bit) {
    info.caps = 1ull << bit;
    EXPECT_EQ(reason(kNew).empty(), (info.caps & ~kCaps) == 0) << "bit " << bit;
  }
}

TEST_F(Hints, TheReasonNamesEachCapabilityThatIsNotSupported) {
  info.caps = FI_MSG | FI_HMEM | FI_PEER;
  EXPECT_EQ(reason(kNew), "caps FI_HMEM|FI_PEER is not supported");
  info.caps = FI_MSG | FI_HMEM | 1ull << 62;
  EXPECT_EQ(reason(kNew), "caps FI_HMEM|0x4000000000000000 is not supported");
  info.caps = 0;
  domain.attributes.caps = FI_SHARED_AV | FI_LOCAL_COMM;
  EXPECT_EQ(reason(kNew), "domain_attr->caps FI_SHARED_AV is not supported");
}

TEST_F(Hints, BitsOfTheOtherSideAreIgnored) {
  tx.caps = FI_MSG | FI_SEND | FI_RECV | FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV | FI_REMOTE_READ;
  rx.caps = FI_MSG | FI_RECV | FI_SEND | FI_READ | FI_FENCE;
  EXPECT_EQ(reason(), "");
  tx.caps |= FI_HMEM;
  EXPECT_NE(reason().find("tx_attr->caps"), std::string::npos);
}

TEST_F(Hints, OtherEndpointTypesAreRefused) {
  for (const auto type : {FI_EP_MSG, FI_EP_DGRAM, FI_EP_SOCK_STREAM}) {
    ep.type = type;
    EXPECT_NE(reason(), "") << type;
  }
}

TEST_F(Hints, DatagramsHaveMessagesOnly) {
  ep.type = FI_EP_DGRAM;
  info.caps = FI_MSG | FI_SOURCE;
  ep.max_msg_size = 1472 - wire::kDatagramHeaderMax;
  EXPECT_EQ(datagram_reason(), "");
  ++ep.max_msg_size;
  EXPECT_NE(datagram_reason().find("max_msg_size"), std::string::npos);
  ep.max_msg_size = 0;
  for (const std::uint64_t more : {FI_TAGGED, FI_RMA, FI_RMA_EVENT, FI_ATOMIC}) {
    info.caps = FI_MSG | more;
    EXPECT_NE(datagram_reason(), "") << more;
  }
  info.caps = FI_MSG;
  tx.msg_order = FI_ORDER_SAS;
  EXPECT_NE(datagram_reason(), "");
  tx.msg_order = 0;
  tx.op_flags = FI_DELIVERY_COMPLETE;
  EXPECT_NE(datagram_reason(), "");
}

TEST_F(Hints, ValuesAboveALimitAreRefused) {
  tx.inject_size = protocol::kInjectMax;
  rx.iov_limit = tx.iov_limit = protocol::kIovMax;
  tx.size = 4096;
  domain.attributes.cq_data_size = 8;
  ep.tx_ctx_cnt = ep.rx_ctx_cnt = 1;
  EXPECT_EQ(reason(), "");
  const auto beyond = [&](std::size_t& field) {
    ++field;
    EXPECT_NE(reason(), "");
    --field;
  };
  beyond(tx.inject_size);
  beyond(tx.iov_limit);
  beyond(rx.iov_limit);
  beyond(tx.size);
  beyond(domain.attributes.cq_data_size);
  beyond(ep.tx_ctx_cnt);
  beyond(ep.rx_ctx_cnt);
  EXPECT_EQ(reason(), "");
  ep.tx_ctx_cnt = ep.rx_ctx_cnt = FI_SHARED_CONTEXT;
  EXPECT_EQ(reason(), "") << "it is the largest value, but no number";
}

TEST_F(Hints, ASharedReceiveContextHasNoBuffersForSeveralMessages) {
  ep.rx_ctx_cnt = FI_SHARED_CONTEXT;
  EXPECT_EQ(reason(), "");
  const auto refused = [&](std::uint64_t& field) {
    field |= FI_MULTI_RECV;
    EXPECT_NE(reason().find("FI_MULTI_RECV"), std::string::npos);
    field &= ~FI_MULTI_RECV;
  };
  refused(info.caps);
  refused(rx.caps);
  refused(rx.op_flags);
  ep.rx_ctx_cnt = 1;
  rx.op_flags = rx.caps = FI_MULTI_RECV;
  EXPECT_EQ(reason(), "");
}

TEST_F(Hints, RegistrationModesOfTheEnumerationStandAlone) {
  for (const int mode : {static_cast<int>(FI_MR_BASIC), static_cast<int>(FI_MR_SCALABLE), 0, ~3}) {
    domain.attributes.mr_mode = mode;
    EXPECT_EQ(reason(FI_VERSION(1, 5)), "") << mode;
    EXPECT_EQ(reason(FI_VERSION(1, 4)).empty(), mode != ~3) << mode;
  }
  for (const int mode :
       {~0, FI_MR_BASIC | FI_MR_SCALABLE, FI_MR_BASIC | FI_MR_LOCAL, FI_MR_SCALABLE | FI_MR_PROV_KEY}) {
    domain.attributes.mr_mode = mode;
    EXPECT_NE(reason(), "") << mode;
  }
}

TEST_F(Hints, BothProgressModelsMatch) {
  domain.attributes.data_progress = FI_PROGRESS_MANUAL;
  domain.attributes.control_progress = FI_PROGRESS_AUTO;
  EXPECT_EQ(reason(), "");
  domain.attributes.data_progress = static_cast<fi_progress>(kProgressControlUnified);
  EXPECT_EQ(reason(), "");
  domain.attributes.data_progress = FI_PROGRESS_AUTO;
  EXPECT_EQ(reason(), "");
  domain.attributes.data_progress = static_cast<fi_progress>(77);
  EXPECT_NE(reason(), "");
}

TEST_F(Hints, OldCallersLeaveNewFieldsUninitialized) {
  domain.attributes.caps = ~0ull;
  domain.attributes.auth_key_size = 99;
  domain.attributes.cntr_cnt = SIZE_MAX;
  domain.attributes.mr_iov_limit = SIZE_MAX;
  ep.auth_key_size = 99;
  EXPECT_EQ(reason(FI_VERSION(1, 4)), "");
  EXPECT_NE(reason(FI_VERSION(1, 5)), "");
}

TEST_F(Hints, NewFieldsAreReadOnlyIfTheCoreHasThem) {
  kMaxGroupId.write(domain.attributes, kNew, 7);
  EXPECT_EQ(reason(kOldVersion, kOldVersion), "");
  EXPECT_NE(reason(kNew, kNew), "");
  kMaxGroupId.write(domain.attributes, kNew, 0);
  kMaxEpAuthKey.write(domain.attributes, kNew, 1);
  EXPECT_EQ(reason(kOldVersion, FI_VERSION(1, 19)), "");
  EXPECT_NE(reason(kOldVersion, FI_VERSION(1, 20)), "");
}

TEST_F(Hints, AnAuthorizationKeyHas16To64Bytes) {
  std::uint8_t key[65] = {};
  domain.attributes.auth_key = ep.auth_key = key;
  for (const std::size_t size : {0u, 16u, 32u, 64u}) {
    domain.attributes.auth_key_size = ep.auth_key_size = size;
    EXPECT_EQ(reason(), "") << size;
  }
  for (std::size_t* field : {&domain.attributes.auth_key_size, &ep.auth_key_size}) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{15}, std::size_t{65}, SIZE_MAX}) {
      *field = size;
      EXPECT_NE(reason(), "") << size;
    }
    *field = 16;
  }
  ep.auth_key = nullptr;
  EXPECT_NE(reason(), "") << "there is none";
}

TEST_F(Hints, AddressesHaveNoKeysOfTheirOwn) {
  domain.attributes.auth_key_size = api::kAvAuthKey;
  EXPECT_NE(reason(FI_VERSION(1, 20), FI_VERSION(1, 20)).find("FI_AV_AUTH_KEY"), std::string::npos);
}

TEST_F(Hints, SocketAddressFormatsOnly) {
  for (const std::uint32_t format :
       {std::uint32_t{FI_FORMAT_UNSPEC}, std::uint32_t{FI_SOCKADDR}, std::uint32_t{FI_SOCKADDR_IN},
        std::uint32_t{FI_SOCKADDR_IN6}, kSockaddrIp}) {
    info.addr_format = format;
    EXPECT_EQ(reason(), "") << format;
  }
  for (const std::uint32_t format : {std::uint32_t{FI_SOCKADDR_IB}, std::uint32_t{FI_ADDR_STR}}) {
    info.addr_format = format;
    EXPECT_NE(reason(), "") << format;
  }
}

}  // namespace
}  // namespace cluster::provider
