// FI_AV_AUTH_KEY: what address vector, endpoint and region of such a domain take, and what they refuse.
#include <cstring>
#include <string>

#include "api/key_ring.h"
#include "api/new_av_ops.h"
#include "unit/api/api_world.h"

namespace cluster::api::test {
namespace {

const std::string kOne = "the first key of these";
const std::string kTwo = "the second key of these";

class AvAuthKeyTest : public ApiTest {
 protected:
  AvAuthKeyTest() {
    fabric->api_version = FI_VERSION(1, 20);
    info.domain.auth_key_size = kAvAuthKey;
    info.info.caps |= FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    EXPECT_EQ(fi_close(&domain->fid), 0);
    EXPECT_EQ(fi_domain(fabric, &info.info, &domain, this), 0);
    av = open_av();
  }
  ~AvAuthKeyTest() override { EXPECT_EQ(fi_close(&av->fid), 0); }
  const NewAvOps& ops() const { return reinterpret_cast<const NewAvOps&>(*av->ops); }
  fi_addr_t insert_key(const std::string& key) {
    fi_addr_t handle = FI_ADDR_NOTAVAIL;
    EXPECT_EQ(ops().insert_auth_key(av, key.data(), key.size(), &handle, 0), 0);
    return handle;
  }
  /// The handle of the address with this key; FI_ADDR_NOTAVAIL: it is refused.
  fi_addr_t insert(const SocketAddress& address, fi_addr_t key) {
    const sockaddr_in name = raw(address);
    fi_av_insert(av, &name, 1, &key, kAuthKeyFlag, nullptr);
    return key;
  }
  std::string key_of(fi_addr_t handle) {
    std::string text(64, '.');
    std::size_t size = text.size();
    if (ops().lookup_auth_key(av, handle, text.data(), &size) != 0) return {};
    return text.substr(0, size);
  }
  fid_ep* open_bound() {
    fid_ep* const endpoint = open_endpoint();
    EXPECT_EQ(fi_ep_bind(endpoint, &av->fid, 0), 0);
    return endpoint;
  }
  int name_of(fid_ep* endpoint) {
    sockaddr_in name{};
    std::size_t size = sizeof name;
    return fi_getname(&endpoint->fid, &name, &size);
  }
  int register_for(RegionAuthKey key, std::uint64_t flags, fid_mr** region, std::size_t size = sizeof(RegionAuthKey)) {
    const iovec memory{&word_, sizeof word_};
    fi_mr_attr attributes{};
    attributes.mr_iov = &memory;
    attributes.iov_count = 1;
    attributes.access = FI_REMOTE_READ;
    attributes.auth_key = reinterpret_cast<std::uint8_t*>(&key);
    attributes.auth_key_size = size;
    return fi_mr_regattr(domain, &attributes, flags, region);
  }
  bool warned(const std::string& words) const {
    return !platform.kept.lines.empty() && platform.kept.lines.back().find(words) != std::string::npos;
  }

  fid_av* av = nullptr;
  std::uint64_t word_ = 0;
};

TEST_F(AvAuthKeyTest, TheTableIsThatOfNewerCallers) {
  EXPECT_EQ(av->ops->size, sizeof(NewAvOps));
  EXPECT_EQ(ops().set_user_id(av, 0, 0, 0), -FI_ENOSYS);
}

TEST_F(AvAuthKeyTest, AnAddressHasTheKeyItWasInsertedWith) {
  const fi_addr_t one = insert_key(kOne);
  const fi_addr_t two = insert_key(kTwo);
  const fi_addr_t a = insert(host(1, 9000), one);
  const fi_addr_t b = insert(host(2, 9000), two);
  const fi_addr_t a_too = insert(host(1, 9000), two);
  EXPECT_EQ(a, 0u);
  EXPECT_EQ(b, 1u);
  EXPECT_EQ(a_too, 2u) << "with another key it is another peer";
  EXPECT_EQ(insert(host(1, 9000), one), a);
  EXPECT_EQ(key_of(a), kOne);
  EXPECT_EQ(key_of(b), kTwo);
  EXPECT_EQ(key_of(a_too), kTwo);
  EXPECT_EQ(key_of(one), kOne);
  EXPECT_EQ(key_of(two), kTwo);
  EXPECT_EQ(key_of(7), "");
  sockaddr_in found{};
  std::size_t size = sizeof found;
  EXPECT_EQ(fi_av_lookup(av, a_too, &found, &size), 0);
  const sockaddr_in name = raw(host(1, 9000));
  EXPECT_EQ(std::memcmp(&found, &name, sizeof name), 0);
}

TEST_F(AvAuthKeyTest, ALookupSaysHowLongTheKeyIs) {
  const fi_addr_t one = insert_key(kOne);
  char few[4] = {};
  std::size_t size = sizeof few;
  EXPECT_EQ(ops().lookup_auth_key(av, one, few, &size), 0);
  EXPECT_EQ(size, kOne.size());
  EXPECT_EQ(std::string(few, sizeof few), kOne.substr(0, sizeof few));
  EXPECT_EQ(ops().lookup_auth_key(av, one, nullptr, &size), -FI_EINVAL);
}

TEST_F(AvAuthKeyTest, NoAddressIsInsertedWithoutAKey) {
  const sockaddr_in name = raw(host(1, 9000));
  fi_addr_t handle = insert_key(kOne);
  EXPECT_EQ(fi_av_insert(av, &name, 1, &handle, 0, nullptr), -FI_EINVAL);
  EXPECT_TRUE(warned("each needs a key"));
  EXPECT_EQ(fi_av_insert(av, &name, 1, nullptr, kAuthKeyFlag, nullptr), -FI_EINVAL);
  EXPECT_EQ(insert(host(1, 9000), 0), FI_ADDR_NOTAVAIL) << "that is no key";
  EXPECT_EQ(insert(host(1, 9000), handle + 1), FI_ADDR_NOTAVAIL) << "nor is that";
  platform.names["node1:9000"] = host(1, 9000);
  platform.names["node2:9000"] = host(2, 9000);
  EXPECT_EQ(fi_av_insertsvc(av, "node1", "9000", &handle, 0, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_av_insertsvc(av, "node1", "9000", &handle, kAuthKeyFlag, nullptr), 1);
  EXPECT_EQ(key_of(handle), kOne);
  fi_addr_t handles[2] = {insert_key(kTwo), insert_key(kOne)};
  EXPECT_EQ(fi_av_insertsym(av, "node1", 2, "9000", 1, handles, kAuthKeyFlag, nullptr), 2);
  EXPECT_EQ(key_of(handles[0]), kTwo);
  EXPECT_EQ(key_of(handles[1]), kOne);
}

TEST_F(AvAuthKeyTest, KeysThatAreInUseAreNotRemoved) {
  fi_addr_t one = insert_key(kOne);
  fi_addr_t peer = insert(host(1, 9000), one);
  EXPECT_EQ(fi_av_remove(av, &one, 1, kAuthKeyFlag), -FI_EBUSY);
  EXPECT_TRUE(warned("stays in the address vector"));
  EXPECT_EQ(fi_av_remove(av, &one, 1, 0), -FI_EINVAL) << "it is no address";
  EXPECT_EQ(fi_av_remove(av, &peer, 1, kAuthKeyFlag), -FI_EINVAL) << "it is no key";
  EXPECT_EQ(fi_av_remove(av, &peer, 1, 0), 0);
  fid_ep* const endpoint = open_bound();
  EXPECT_EQ(name_of(endpoint), 0);
  EXPECT_EQ(fi_av_remove(av, &one, 1, kAuthKeyFlag), -FI_EBUSY);
  EXPECT_EQ(fi_close(&endpoint->fid), 0);
  fid_mr* region = nullptr;
  EXPECT_EQ(register_for({av, FI_ADDR_UNSPEC}, 0, &region), 0);
  EXPECT_EQ(fi_av_remove(av, &one, 1, kAuthKeyFlag), -FI_EBUSY);
  EXPECT_EQ(fi_close(&av->fid), -FI_EBUSY) << "the region has its keys";
  EXPECT_EQ(fi_close(&region->fid), 0);
  EXPECT_EQ(fi_av_remove(av, &one, 1, kAuthKeyFlag), 0);
  EXPECT_EQ(key_of(one), "");
}

TEST_F(AvAuthKeyTest, AnEndpointHasTheKeysThatAreThereWhenItOpens) {
  fid_ep* const unbound = open_endpoint();
  EXPECT_EQ(name_of(unbound), -FI_ENOAV);
  EXPECT_EQ(fi_close(&unbound->fid), 0);
  fid_ep* const endpoint = open_bound();
  EXPECT_EQ(name_of(endpoint), -FI_ENOKEY);
  EXPECT_TRUE(warned("no key in its address vector"));
  EXPECT_EQ(platform.built, 0) << "an endpoint without protection is not opened";
  insert_key(kOne);
  insert_key(kTwo);
  EXPECT_EQ(name_of(endpoint), 0);
  EXPECT_EQ(platform.last_realm_keys, (std::vector<std::pair<int, std::string>>{{1, kOne}, {2, kTwo}}));
  EXPECT_TRUE(platform.last_auth_key.empty());
  EXPECT_EQ(fi_close(&endpoint->fid), 0);
}

TEST_F(AvAuthKeyTest, TheEndpointHasNoneOfItsOwn) {
  std::uint8_t key[16] = {1};
  fid_ep* endpoint = nullptr;
  info.ep.auth_key = key;
  EXPECT_EQ(fi_endpoint(domain, &info.info, &endpoint, this), -FI_EINVAL);
  info.ep.auth_key_size = sizeof key;
  EXPECT_EQ(fi_endpoint(domain, &info.info, &endpoint, this), -FI_EINVAL);
  info.domain.auth_key = key;
  fid_domain* second = nullptr;
  EXPECT_EQ(fi_domain(fabric, &info.info, &second, this), -FI_EINVAL);
}

TEST_F(AvAuthKeyTest, WhatAllMembersWouldShareAKeyForIsNotThere) {
  fid_ep* endpoint = nullptr;
  for (const std::uint64_t capability : {FI_COLLECTIVE, FI_MULTICAST}) {
    info.info.caps |= capability;
    EXPECT_EQ(fi_endpoint(domain, &info.info, &endpoint, this), -FI_EOPNOTSUPP);
    info.info.caps &= ~capability;
  }
}

TEST_F(AvAuthKeyTest, ADomainHasOneAddressVectorAtATime) {
  fi_av_attr attributes{};
  fid_av* second = nullptr;
  EXPECT_EQ(fi_av_open(domain, &attributes, &second, this), -FI_EBUSY);
  EXPECT_TRUE(warned("has one"));
  EXPECT_EQ(fi_close(&av->fid), 0);
  av = open_av();
}

TEST_F(AvAuthKeyTest, ARegionNeedsAKey) {
  fid_mr* region = nullptr;
  EXPECT_EQ(register_for({av, FI_ADDR_UNSPEC}, 0, &region), -FI_ENOKEY);
  EXPECT_TRUE(warned("no key"));
}

TEST_F(AvAuthKeyTest, AnEndpointThatCouldNotOpenHasNoKey) {
  fi_addr_t one = insert_key(kOne);
  fid_ep* const endpoint = open_bound();
  platform.fail_with = FI_ENOMEM;
  EXPECT_EQ(name_of(endpoint), -FI_ENOMEM);
  EXPECT_EQ(fi_av_remove(av, &one, 1, kAuthKeyFlag), 0);
  EXPECT_EQ(fi_close(&endpoint->fid), 0);
}

TEST_F(AvAuthKeyTest, ARegionNamesTheAddressVector) {
  const fi_addr_t one = insert_key(kOne);
  const fi_addr_t peer = insert(host(1, 9000), one);
  fid_mr* region = nullptr;
  EXPECT_EQ(fi_mr_reg(domain, &word_, sizeof word_, FI_REMOTE_READ, 0, 1, 0, &region, this), -FI_EINVAL);
  EXPECT_TRUE(warned("fi_mr_regattr"));
  EXPECT_EQ(register_for({nullptr, FI_ADDR_UNSPEC}, 0, &region), -FI_EINVAL);
  EXPECT_EQ(register_for({av, FI_ADDR_UNSPEC}, 0, &region, 22), -FI_EINVAL);
  EXPECT_EQ(register_for({av, peer}, 0, &region), -FI_EOPNOTSUPP);
  EXPECT_EQ(register_for({av, peer}, kAuthKeyFlag, &region), -FI_EINVAL) << "that is no key";
  EXPECT_EQ(register_for({av, one}, kAuthKeyFlag, &region), 0);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

/// What would be received from others as well is not received at all.
TEST_F(AvAuthKeyTest, AReceiveIsNotForOneKey) {
  fi_addr_t one = insert_key(kOne);
  fid_ep* const endpoint = open_bound();
  fid_cq* const cq = open_cq();
  EXPECT_EQ(fi_ep_bind(endpoint, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
  EXPECT_EQ(fi_enable(endpoint), 0);
  const iovec memory{&word_, sizeof word_};
  const fi_msg message{.msg_iov = &memory, .desc = nullptr, .iov_count = 1, .addr = one, .context = nullptr, .data = 0};
  EXPECT_EQ(fi_recvmsg(endpoint, &message, kAuthKeyFlag), -FI_EBADFLAGS);
  fid_ep* face = nullptr;
  ASSERT_EQ(fi_ep_alias(endpoint, &face, FI_RECV), 0);
  EXPECT_EQ(fi_recvmsg(face, &message, kAuthKeyFlag), -FI_EBADFLAGS);
  EXPECT_EQ(fi_close(&face->fid), 0);
  fi_msg from_all = message;
  from_all.addr = FI_ADDR_UNSPEC;
  EXPECT_EQ(fi_recvmsg(endpoint, &from_all, kAuthKeyFlag), 0) << "there is no key that it would be for";
  EXPECT_EQ(fi_recv(endpoint, &word_, sizeof word_, nullptr, one, nullptr), -FI_EINVAL) << "a key is no peer";
  EXPECT_EQ(fi_inject(endpoint, &word_, sizeof word_, one), -FI_EINVAL);
  EXPECT_EQ(fi_close(&endpoint->fid), 0);
  EXPECT_EQ(fi_close(&cq->fid), 0);
}

TEST_F(ApiTest, WithoutKeysInTheAddressVectorItTakesNone) {
  fid_av* const av = open_av();
  const auto& ops = reinterpret_cast<const NewAvOps&>(*av->ops);
  fi_addr_t handle = 0;
  EXPECT_EQ(ops.insert_auth_key(av, kOne.data(), kOne.size(), &handle, 0), -FI_EINVAL);
  std::size_t size = 0;
  EXPECT_EQ(ops.lookup_auth_key(av, 0, nullptr, &size), -FI_EINVAL);
  const sockaddr_in name = raw(host(1, 9000));
  EXPECT_EQ(fi_av_insert(av, &name, 1, &handle, kAuthKeyFlag, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_av_remove(av, &handle, 1, kAuthKeyFlag), -FI_EBADFLAGS);
  EXPECT_EQ(fi_close(&av->fid), 0);
}

}  // namespace
}  // namespace cluster::api::test
