// auth_key: endpoints with the same key talk, and sizes that are none are refused. fi_endpoint(3), fi_domain(3)
#include "fabric.h"

namespace conformance {
namespace {

const std::string kLongest(64, 'k');

SINGLE_TEST(AuthKey, ComesBackFromGetinfo) {
  const Info info = get_info({.domain_key = "16 bytes of keys", .endpoint_key = kLongest});
  ASSERT_NE(info, nullptr);
  ASSERT_EQ(info->domain_attr->auth_key_size, 16u);
  EXPECT_EQ(std::memcmp(info->domain_attr->auth_key, "16 bytes of keys", 16), 0);
  ASSERT_EQ(info->ep_attr->auth_key_size, kLongest.size());
  EXPECT_EQ(std::memcmp(info->ep_attr->auth_key, kLongest.data(), kLongest.size()), 0);
  const Info none = get_info({});
  ASSERT_NE(none, nullptr);
  EXPECT_EQ(none->ep_attr->auth_key_size, 0u);
  EXPECT_EQ(none->domain_attr->auth_key_size, 0u);
}

SINGLE_TEST(AuthKey, OfAnotherSizeIsRefused) {
  for (const std::string& key : {std::string("k"), std::string(15, 'k'), kLongest + "k"}) {
    EXPECT_EQ(get_info({.domain_key = key}), nullptr) << key;
    EXPECT_EQ(get_info({.endpoint_key = key}), nullptr) << key;
  }
}

SINGLE_TEST(AuthKey, LeavesGroupsIn) {
  EXPECT_NE(get_info({.caps = FI_MSG | FI_MULTICAST, .domain_key = "16 bytes of keys"}), nullptr);
}

void talk(Side& side, const Options& options) {
  Team team(side, options);
  Endpoint& e = team.endpoint;
  for (const std::size_t size : {8u, 5000u, 1u << 20}) {
    SCOPED_TRACE(size);
    const auto data = pattern(size, size);
    std::vector<unsigned char> buffer(size);
    int in = 0;
    int out = 0;
    e.must([&] { return fi_recv(e.ep(), buffer.data(), size, nullptr, team.peer(), &in); });
    e.must([&] { return fi_send(e.ep(), data.data(), size, nullptr, team.peer(), &out); });
    e.finish(&out);
    e.finish(&in);
    EXPECT_TRUE(has_pattern(buffer, size));
  }
}

PAIR_TEST(AuthKey, TheSameOneLetsEndpointsTalk) { talk(side, {.domain_key = "sixteen bytes at least"}); }

PAIR_TEST(AuthKey, ThatOfAnEndpointComesBeforeThatOfItsDomain) {
  const std::string own = side.first() ? "the key of the first side" : "the key of the second side";
  talk(side, {.domain_key = own, .endpoint_key = "the key of both sides"});
}

/// The sender goes on trying.
PAIR_TEST(AuthKey, AnotherOneKeepsEndpointsApart) {
  const std::string own = side.first() ? "the key of the first side" : "the key of the second side";
  Team team(side, {.domain_key = own});
  Endpoint& e = team.endpoint;
  char got = 0;
  e.must([&] { return fi_recv(e.ep(), &got, 1, nullptr, FI_ADDR_UNSPEC, &got); });
  const char word = 'a';
  if (side.first()) e.must([&] { return fi_inject(e.ep(), &word, 1, team.peer()); });
  EXPECT_TRUE(e.silent(std::chrono::milliseconds(300)));
  EXPECT_EQ(got, 0);
}

/// As long as fi_getinfo says that they may be: the seal is not part of that.
PAIR_TEST(AuthKey, DatagramsAreSealed) {
  Team team(side, {.type = FI_EP_DGRAM, .caps = FI_MSG | FI_SOURCE, .domain_key = "sixteen bytes at least"});
  Endpoint& e = team.endpoint;
  const std::size_t limit = e.domain().info()->ep_attr->max_msg_size;
  const std::size_t without =
      get_info({.type = FI_EP_DGRAM, .caps = FI_MSG | FI_SOURCE})->ep_attr->max_msg_size;
  EXPECT_EQ(without == limit, std::getenv("FI_CLUSTER_KEY") != nullptr) << without;
  const auto data = pattern(limit, 1);
  std::vector<unsigned char> buffer(limit);
  int in = 0;
  int out = 0;
  e.must([&] { return fi_recv(e.ep(), buffer.data(), limit, nullptr, FI_ADDR_UNSPEC, &in); });
  team.meet();
  const auto send = [&] {
    e.must([&] { return fi_send(e.ep(), data.data(), limit, nullptr, team.peer(), &out); });
    e.finish(&out);
  };
  if (side.first()) send();
  EXPECT_EQ(e.finish(&in).entry.len, limit);
  EXPECT_TRUE(has_pattern(buffer, 1));
  if (!side.first()) send();
}

}  // namespace
}  // namespace conformance
