// Registered memory of endpoints that have keys: initiators without the key do not get the table.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "seal/local_proof.h"
#include "shm/peer_regions.h"
#include "shm/region_directory.h"
#include "support/fake_environment.h"
#include "support/seal_keys.h"

namespace cluster::shm {
namespace {

using carrier::Outcome;

constexpr std::uint64_t kRegion = 0x8000000000000001;

SocketAddress fresh_region_name() {
  static std::uint16_t next = static_cast<std::uint16_t>(::getpid() * 16);
  if (next == 0) ++next;
  const std::byte ip[] = {std::byte{127}, std::byte{0}, std::byte{96}, std::byte{1}};
  return SocketAddress::v4(ip, next++);
}

struct KeyedDomain {
  explicit KeyedDomain(seal::JobKeys of_endpoints) : keys(std::move(of_endpoints)) {}

  seal::JobKeys keys;
  test::FakeClock clock;
  test::FakeRandom random{static_cast<std::uint64_t>(::getpid())};
  test::FakeLog log;
  RegionDirectory directory{clock, random, log, [this](const SocketAddress&) { return keys; }};
};

/// What an initiator with these keys reads of a region whose owner has those.
class KeyedRegionTest : public testing::Test {
 protected:
  Outcome read_with(const seal::JobKeys& own, const seal::JobKeys& owners) {
    KeyedDomain domain(owners);
    domain.directory.offer(kRegion,
                           {.base = reinterpret_cast<std::uintptr_t>(&word_), .length = 8, .readable = true});
    const SocketAddress name = fresh_region_name();
    const std::shared_ptr<void> served = domain.directory.serve(name, false, false);
    const auto regions = PeerRegionConnector(random_, log_, own, 10s).connect(name);
    if (regions == nullptr) return Outcome::unsuited;
    const Bytes slices[] = {as_bytes(&seen_, sizeof seen_)};
    return regions->read(kRegion, 0, slices, 0, sizeof seen_);
  }

  test::FakeRandom random_{7};  ///< not the owner's: its thread draws while this one does
  test::FakeLog log_;
  std::uint64_t word_ = 5;
  std::uint64_t seen_ = 0;
};

TEST_F(KeyedRegionTest, AreReadWithTheKeyOfTheirOwner) {
  const seal::JobKeys keys = test::credentials({"the key of this job"}).keys;
  if (read_with({}, {}) != Outcome::done) GTEST_SKIP() << "this kernel lets no process look into another";
  EXPECT_EQ(read_with(keys, keys), Outcome::done);
  EXPECT_EQ(read_with(keys, test::credentials({"the key of another"}).keys), Outcome::unsuited);
  EXPECT_EQ(read_with(keys, {}), Outcome::unsuited);
  EXPECT_EQ(read_with({}, keys), Outcome::unsuited);
  EXPECT_EQ(read_with(test::credentials({"a new key of this job", "the key of this job"}).keys, keys),
            Outcome::done);
}

/// It has seen the name of the socket, and not the key: the table is not for it.
TEST_F(KeyedRegionTest, AreNotShownToAProcessThatHasOnlySeenTheName) {
  const seal::JobKeys keys = test::credentials({"the key of this job"}).keys;
  KeyedDomain domain(keys);
  domain.directory.offer(kRegion,
                         {.base = reinterpret_cast<std::uintptr_t>(&word_), .length = 8, .readable = true});
  const SocketAddress name = fresh_region_name();
  const std::shared_ptr<void> served = domain.directory.serve(name, false, false);
  std::string reason;
  os::LocalSocket socket =
      os::LocalSocket::connect(keyed_names(region_socket_name(name), keys).front().socket, reason);
  ASSERT_TRUE(socket) << reason;
  const seal::ProofRequest request;
  ASSERT_TRUE(socket.send(as_bytes(&request, sizeof request)));
  seal::ProofAnswer answer;
  socket.wait_for_message(5s);
  ASSERT_EQ(socket.receive(as_bytes(&answer, sizeof answer)), os::LocalSocket::Receipt::message);
  os::Descriptor page;
  const os::SharedMemory memory = os::SharedMemory::create(sizeof(UsePage), page, reason);
  std::array<std::byte, sizeof(RegionHello) + sizeof answer.tag> hello;
  const RegionHello plain;
  std::memcpy(hello.data(), &plain, sizeof plain);
  std::memcpy(hello.data() + sizeof plain, answer.tag.data(),
              answer.tag.size());  // all the tags that it has seen
  ASSERT_TRUE(socket.send(hello, page, reason)) << reason;
  socket.wait_for_message(5s);
  RegionWelcome welcome;
  os::Descriptor table;
  EXPECT_EQ(socket.receive(as_bytes(&welcome, sizeof welcome), &table), os::LocalSocket::Receipt::end);
}

}  // namespace
}  // namespace cluster::shm
