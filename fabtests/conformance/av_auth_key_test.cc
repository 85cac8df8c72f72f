// FI_AV_AUTH_KEY: an endpoint with several keys, each peer under its own. fi_av(3), fi_domain(3), fi_mr(3) of libfabric 1.20
#include <rdma/fi_rma.h>

#include "av_keys.h"
#include "fabric.h"

/// With cores that have the calls.
#define KEYS_TEST(name, sides)                                                                         \
  static void AvAuthKey_##name##_body(conformance::Side& side);                                        \
  TEST(AvAuthKey, name) {                                                                              \
    if (!conformance::has_av_keys()) GTEST_SKIP() << "no FI_AV_AUTH_KEY: this libfabric is before 1.20"; \
    conformance::run_sides(sides, AvAuthKey_##name##_body);                                            \
  }                                                                                                    \
  static void AvAuthKey_##name##_body([[maybe_unused]] conformance::Side& side)

namespace conformance {
namespace {

const std::string kOne = "the key of the first job";
const std::string kTwo = "the key of the second job";
constexpr auto kSilence = std::chrono::milliseconds(300);

Options with_keys(std::vector<std::string> keys) { return {.av_keys = std::move(keys)}; }

/// A domain with keys, an endpoint in it, and the names of all sides.
struct Keyed {
  Keyed(Side& side_, const Options& options) : side(side_), domain(options), endpoint(domain), names(side.exchange(endpoint.name())) {}
  ~Keyed() { meet(); }
  void meet() {
    side.meet([this] { endpoint.progress(); });
  }
  fi_addr_t insert(std::size_t peer, std::size_t key) { return domain.insert(names[peer], key); }
  void expect(char& word, fi_addr_t from) {
    endpoint.must([&] { return fi_recv(endpoint.ep(), &word, 1, nullptr, from, &word); });
  }
  void say(const char& word, fi_addr_t to) {
    endpoint.must([&] { return fi_inject(endpoint.ep(), &word, 1, to); });
  }
  int register_for(RegionAuthKey key, std::uint64_t flags, void* memory, std::size_t size, std::uint64_t number, fid_mr*& region) {
    const iovec range{memory, size};
    fi_mr_attr attributes{};
    attributes.mr_iov = &range;
    attributes.iov_count = 1;
    attributes.access = FI_REMOTE_WRITE;
    attributes.requested_key = number;
    attributes.auth_key = reinterpret_cast<std::uint8_t*>(&key);
    attributes.auth_key_size = sizeof key;
    return fi_mr_regattr(domain.domain(), &attributes, flags, &region);
  }

  Side& side;
  Domain domain;
  Endpoint endpoint;
  std::vector<Blob> names;
};

KEYS_TEST(ComesBackFromGetinfo, 1) {
  const Info info = get_info(with_keys({kOne}));
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->domain_attr->auth_key_size, kAvAuthKey);
  EXPECT_EQ(info->domain_attr->auth_key, nullptr);
  EXPECT_EQ(info->ep_attr->auth_key_size, 0u);
  std::size_t most = 0;  // max_ep_auth_key, behind what older headers have
  std::memcpy(&most, reinterpret_cast<const char*>(info->domain_attr) + sizeof(fi_domain_attr), sizeof most);
  EXPECT_EQ(most, 8u);
  EXPECT_EQ(get_info({.endpoint_key = kOne, .av_keys = {kOne}}), nullptr) << "an endpoint has none of its own";
  EXPECT_EQ(get_info({.caps = FI_MSG | FI_COLLECTIVE, .av_keys = {kOne}}), nullptr);
  EXPECT_EQ(get_info({.caps = FI_MSG | FI_MULTICAST, .av_keys = {kOne}}), nullptr);
}

KEYS_TEST(TheAddressVectorHoldsSomeAndSaysWhichIsWhose, 1) {
  Keyed all(side, with_keys({kOne, kTwo}));
  const AvKeyOps& ops = *key_ops(all.domain.av());
  const fi_addr_t peer = all.insert(0, 1);
  const auto key_of = [&](fi_addr_t handle) {
    std::string text(64, '.');
    std::size_t size = text.size();
    EXPECT_EQ(ops.lookup_auth_key(all.domain.av(), handle, text.data(), &size), 0);
    return text.substr(0, size);
  };
  EXPECT_EQ(key_of(peer), kTwo);
  EXPECT_EQ(key_of(all.domain.key(0)), kOne);
  EXPECT_EQ(key_of(all.domain.key(1)), kTwo);
  fi_addr_t handle = all.domain.key(0);
  const Blob& name = all.names[0];
  EXPECT_EQ(fi_av_insert(all.domain.av(), name.data(), 1, &handle, 0, nullptr), -FI_EINVAL) << "every peer has a key";
  EXPECT_EQ(ops.insert_auth_key(all.domain.av(), "short", 5, &handle, 0), -FI_EINVAL);
  for (int i = 2; i < 8; ++i) {
    const std::string further = "one of many keys " + std::to_string(i);
    EXPECT_EQ(ops.insert_auth_key(all.domain.av(), further.data(), further.size(), &handle, 0), 0) << i;
  }
  EXPECT_EQ(ops.insert_auth_key(all.domain.av(), "one more than these", 19, &handle, 0), -FI_ENOSPC);
  handle = all.domain.key(0);
  EXPECT_EQ(fi_av_remove(all.domain.av(), &handle, 1, kAuthKeyFlag), -FI_EBUSY) << "the endpoint has it";
}

KEYS_TEST(EachPeerTalksUnderItsKey, 3) {
  // The first side knows both, the others one each, and know each other with it, which leads nowhere.
  const bool hub = side.first();
  Keyed all(side, with_keys(hub ? std::vector{kOne, kTwo} : std::vector{side.index() == 1 ? kOne : kTwo}));
  const fi_addr_t left = all.insert(hub ? 1 : 0, 0);
  const fi_addr_t right = all.insert(hub ? 2 : static_cast<std::size_t>(3 - side.index()), hub ? 1 : 0);
  char got[2] = {};
  if (hub) {
    all.expect(got[0], left);
    all.expect(got[1], right);
    all.say('h', left);
    all.say('h', right);
    EXPECT_EQ(all.endpoint.finish(&got[1]).source, right);
    EXPECT_EQ(all.endpoint.finish(&got[0]).source, left);
    EXPECT_EQ(std::string(got, 2), "12");
  } else {
    all.expect(got[0], left);
    all.say(static_cast<char>('0' + side.index()), left);
    EXPECT_EQ(all.endpoint.finish(&got[0]).source, left);
    all.expect(got[1], FI_ADDR_UNSPEC);
    all.say('x', right);
    EXPECT_TRUE(all.endpoint.silent(kSilence)) << "the other job has been heard";
  }
}

/// Both are let in; a process with the other key is a source that is not known.
KEYS_TEST(WithAnotherKeyAPeerIsAnUnknownSource, 2) {
  Options options = with_keys(side.first() ? std::vector{kOne, kTwo} : std::vector{kOne});
  options.caps |= FI_SOURCE_ERR;
  Keyed all(side, options);
  char got = 0;
  if (side.first()) {
    const fi_addr_t peer = all.insert(1, 1);
    all.expect(got, peer);
    all.meet();
    EXPECT_TRUE(all.endpoint.silent(kSilence)) << "it has spoken for a peer with another key";
    char any = 0;
    all.expect(any, FI_ADDR_UNSPEC);
    const Outcome outcome = all.endpoint.fail(&any, FI_EADDRNOTAVAIL);
    EXPECT_EQ(any, 's');
    EXPECT_EQ(outcome.failure.err_data_size, 16u) << "its address";
    EXPECT_EQ(outcome.source, all.domain.key(0)) << "with which key it came";
    all.say('h', peer);
    all.meet();
    EXPECT_EQ(fi_cancel(&all.endpoint.ep()->fid, &got), 0);
  } else {
    const fi_addr_t hub = all.insert(0, 0);
    all.expect(got, FI_ADDR_UNSPEC);
    all.say('s', hub);
    all.meet();
    EXPECT_TRUE(all.endpoint.silent(kSilence)) << "it has got what was for another";
    all.meet();
  }
}

KEYS_TEST(OneThatHasOneKeyOfItsOwnIsAPeer, 2) {
  const std::vector<std::string> keys = {kTwo, kOne};
  Options options{.domain_key = side.first() ? std::string() : kOne};
  if (side.first()) options.av_keys = keys;
  Keyed all(side, options);
  const fi_addr_t peer = side.first() ? all.insert(1, 1) : all.endpoint.insert(all.names[0]);
  for (const std::size_t size : {8u, 5000u, 1u << 20}) {
    const auto data = pattern(size, size);
    std::vector<unsigned char> buffer(size);
    int in = 0;
    int out = 0;
    Endpoint& e = all.endpoint;
    e.must([&] { return fi_recv(e.ep(), buffer.data(), size, nullptr, peer, &in); });
    e.must([&] { return fi_send(e.ep(), data.data(), size, nullptr, peer, &out); });
    e.finish(&out);
    e.finish(&in);
    EXPECT_TRUE(has_pattern(buffer, size));
  }
}

/// The same two processes, once under each key: four peers in all.
KEYS_TEST(OneProcessUnderTwoKeysIsTwoPeers, 2) {
  Keyed all(side, with_keys({kOne, kTwo}));
  const std::size_t other = side.first() ? 1 : 0;
  const fi_addr_t peers[2] = {all.insert(other, 0), all.insert(other, 1)};
  EXPECT_NE(peers[0], peers[1]);
  char got[2] = {};
  for (int i = 0; i < 2; ++i) all.expect(got[i], peers[i]);
  for (int i = 1; i >= 0; --i) all.say(static_cast<char>('0' + i), peers[i]);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(all.endpoint.finish(&got[i]).source, peers[i]);
  EXPECT_EQ(std::string(got, 2), "01");
}

KEYS_TEST(OneReachesItself, 1) {
  Keyed all(side, with_keys({kOne, kTwo}));
  const fi_addr_t self = all.insert(0, 1);
  char got = 0;
  all.expect(got, self);
  all.say('s', self);
  EXPECT_EQ(all.endpoint.finish(&got).source, self);
}

/// A region for all keys, and one for the peers with the second key.
KEYS_TEST(ARegionIsForThePeersWithItsKeys, 3) {
  Options options = with_keys(side.first() ? std::vector{kOne, kTwo} : std::vector{side.index() == 1 ? kOne : kTwo});
  options.caps |= FI_RMA | FI_WRITE | FI_REMOTE_WRITE;
  Keyed all(side, options);
  std::uint64_t words[2][2] = {};
  if (side.first()) {
    all.insert(1, 0);
    all.insert(2, 1);
    fid_mr* plain = nullptr;
    EXPECT_EQ(fi_mr_reg(all.domain.domain(), words, sizeof words, FI_REMOTE_WRITE, 0, 9, 0, &plain, nullptr), -FI_EINVAL);
    fid_mr* regions[2] = {};
    EXPECT_EQ(all.register_for({all.domain.av(), FI_ADDR_UNSPEC}, 0, words[0], sizeof words[0], 1, regions[0]), 0);
    EXPECT_EQ(all.register_for({all.domain.av(), all.domain.key(1)}, kAuthKeyFlag, words[1], sizeof words[1], 2, regions[1]), 0);
    all.meet();
    all.meet();
    EXPECT_EQ(words[0][0], 1u);
    EXPECT_EQ(words[0][1], 2u);
    EXPECT_EQ(words[1][0], 0u) << "it was for peers with the other key";
    EXPECT_EQ(words[1][1], 2u);
    for (fid_mr* const region : regions) EXPECT_EQ(fi_close(&region->fid), 0);
  } else {
    const fi_addr_t hub = all.insert(0, 0);
    all.meet();
    Endpoint& e = all.endpoint;
    const auto word = static_cast<std::uint64_t>(side.index());
    const auto write = [&](std::uint64_t key, int& context) {
      e.must([&] { return fi_write(e.ep(), &word, sizeof word, nullptr, hub, (word - 1) * sizeof word, key, &context); });
    };
    int first = 0;
    int second = 0;
    write(1, first);
    e.finish(&first);
    write(2, second);
    if (side.index() == 2) {
      e.finish(&second);
    } else {
      e.fail(&second, FI_EACCES);
    }
    all.meet();
  }
}

KEYS_TEST(DatagramsHaveTheKeyOfTheirPeer, 3) {
  Options options = with_keys(side.first() ? std::vector{kOne, kTwo} : std::vector{side.index() == 1 ? kOne : kTwo});
  options.type = FI_EP_DGRAM;
  options.caps = FI_MSG | FI_SOURCE;
  Keyed all(side, options);
  char got[2] = {};
  if (side.first()) {
    const fi_addr_t peers[2] = {all.insert(1, 0), all.insert(2, 1)};
    for (char& word : got) all.expect(word, FI_ADDR_UNSPEC);
    all.meet();
    for (char& word : got) {
      const fi_addr_t source = all.endpoint.finish(&word).source;
      EXPECT_EQ(source, peers[word - '1']) << word;
    }
    EXPECT_NE(got[0], got[1]);
  } else {
    const fi_addr_t hub = all.insert(0, 0);
    all.meet();
    all.say(static_cast<char>('0' + side.index()), hub);
  }
}

}  // namespace
}  // namespace conformance
