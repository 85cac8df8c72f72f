// Authorization keys that applications give: which object they belong to, and which keys are refused.
#include "api/auth_key.h"

#include <numeric>
#include <vector>

#include "unit/api/api_world.h"

namespace cluster::api::test {
namespace {

class AuthKeyTest : public ApiTest {
 protected:
  AuthKeyTest() {
    std::iota(std::begin(one_), std::end(one_), std::uint8_t{1});
    std::iota(std::begin(other_), std::end(other_), std::uint8_t{101});
  }
  /// With what key the engine of an endpoint is built, whose attributes are those of `info`.
  std::vector<std::byte> key_of_endpoint() {
    fid_ep* const endpoint = open_endpoint();
    std::size_t size = 0;
    fi_getname(&endpoint->fid, nullptr, &size);
    EXPECT_EQ(fi_close(&endpoint->fid), 0);
    return platform.last_auth_key;
  }
  void reopen_domain() {
    EXPECT_EQ(fi_close(&domain->fid), 0);
    EXPECT_EQ(fi_domain(fabric, &info.info, &domain, this), 0);
  }
  static std::vector<std::byte> bytes(const std::uint8_t* key, std::size_t size) {
    const auto* const begin = reinterpret_cast<const std::byte*>(key);
    return {begin, begin + size};
  }
  int register_with(std::uint8_t* key, std::size_t size) {
    const iovec memory{&word_, sizeof word_};
    fi_mr_attr attributes{};
    attributes.mr_iov = &memory;
    attributes.iov_count = 1;
    attributes.access = FI_REMOTE_READ;
    attributes.auth_key = key;
    attributes.auth_key_size = size;
    fid_mr* region = nullptr;
    const int error = fi_mr_regattr(domain, &attributes, 0, &region);
    if (error == 0) {
      EXPECT_EQ(fi_close(&region->fid), 0);
    }
    return error;
  }

  std::uint8_t one_[64];
  std::uint8_t other_[16];
  std::uint64_t word_ = 0;
};

TEST_F(AuthKeyTest, AnEndpointHasItsOwnOrThatOfItsDomain) {
  EXPECT_TRUE(key_of_endpoint().empty());
  info.domain.auth_key = one_;
  info.domain.auth_key_size = sizeof one_;
  EXPECT_TRUE(key_of_endpoint().empty()) << "the domain was opened without";
  reopen_domain();
  EXPECT_EQ(key_of_endpoint(), bytes(one_, sizeof one_));
  info.ep.auth_key = other_;
  info.ep.auth_key_size = sizeof other_;
  EXPECT_EQ(key_of_endpoint(), bytes(other_, sizeof other_));
}

TEST_F(AuthKeyTest, TheKeyIsCopiedWhenTheObjectOpens) {
  info.ep.auth_key = other_;
  info.ep.auth_key_size = sizeof other_;
  fid_ep* const endpoint = open_endpoint();
  const std::vector<std::byte> given = bytes(other_, sizeof other_);
  std::fill(std::begin(other_), std::end(other_), std::uint8_t{0});
  std::size_t size = 0;
  fi_getname(&endpoint->fid, nullptr, &size);
  EXPECT_EQ(platform.last_auth_key, given);
  EXPECT_EQ(fi_close(&endpoint->fid), 0);
}

TEST_F(AuthKeyTest, OtherSizesAreRefused) {
  fid_ep* endpoint = nullptr;
  fid_domain* second = nullptr;
  for (const std::size_t size : {std::size_t{1}, std::size_t{15}, std::size_t{65}, SIZE_MAX}) {
    info.ep.auth_key = info.domain.auth_key = one_;
    info.ep.auth_key_size = info.domain.auth_key_size = size;
    EXPECT_EQ(fi_endpoint(domain, &info.info, &endpoint, this), -FI_EINVAL) << size;
    EXPECT_EQ(fi_domain(fabric, &info.info, &second, this), -FI_EINVAL) << size;
    EXPECT_EQ(register_with(one_, size), -FI_EINVAL) << size;
  }
  info.ep.auth_key = nullptr;
  info.ep.auth_key_size = 16;
  EXPECT_EQ(fi_endpoint(domain, &info.info, &endpoint, this), -FI_EINVAL) << "there is none";
}

/// FI_AV_AUTH_KEY, and what an application would do after it.
TEST_F(AuthKeyTest, AddressesHaveNoKeysOfTheirOwn) {
  fabric->api_version = FI_VERSION(1, 20);
  info.domain.auth_key_size = kAvAuthKey;
  fid_domain* second = nullptr;
  EXPECT_EQ(fi_domain(fabric, &info.info, &second, this), -FI_EINVAL);
  ASSERT_FALSE(platform.kept.lines.empty());
  EXPECT_NE(platform.kept.lines.back().find("FI_AV_AUTH_KEY"), std::string::npos)
      << platform.kept.lines.back();
  fid_av* const av = open_av();
  constexpr std::uint64_t kFlag = 1ull << 57;  // FI_AUTH_KEY
  const sockaddr_in name = raw(host(1, 9000));
  fi_addr_t handle = 0;
  int (*insert_key)(fid_av*, const void*, std::size_t, fi_addr_t*, std::uint64_t) = nullptr;
  const auto* const appended = reinterpret_cast<const std::byte*>(av->ops) + sizeof(fi_ops_av);  // since 1.20
  std::memcpy(&insert_key, appended, sizeof insert_key);
  EXPECT_EQ(insert_key(av, one_, 32, &handle, 0), -FI_ENOSYS);
  EXPECT_EQ(fi_av_insert(av, &name, 1, &handle, kFlag, nullptr), -FI_EBADFLAGS);
  EXPECT_EQ(fi_av_remove(av, &handle, 1, kFlag), -FI_EBADFLAGS);
  EXPECT_EQ(fi_close(&av->fid), 0);
}

TEST_F(AuthKeyTest, ARegionHasThatOfItsDomain) {
  EXPECT_EQ(register_with(nullptr, 0), 0);
  EXPECT_EQ(register_with(one_, 32), -FI_EINVAL) << "the domain has none";
  info.domain.auth_key = one_;
  info.domain.auth_key_size = 32;
  reopen_domain();
  EXPECT_EQ(register_with(nullptr, 0), 0);
  EXPECT_EQ(register_with(one_, 32), 0);
  EXPECT_EQ(register_with(one_, 33), -FI_EINVAL);
  EXPECT_EQ(register_with(other_, 16), -FI_EINVAL);
}

/// Their structures end before these fields, as far as they know.
TEST_F(AuthKeyTest, CallersBefore15HaveNone) {
  fabric->api_version = FI_VERSION(1, 4);
  info.ep.auth_key_size = info.domain.auth_key_size = 5;
  reopen_domain();
  EXPECT_TRUE(key_of_endpoint().empty());
  EXPECT_EQ(platform.built, 1);
}

}  // namespace
}  // namespace cluster::api::test
