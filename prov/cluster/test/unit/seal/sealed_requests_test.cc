// Requests for associations that get no answer: our own requests to a closed port, and replayed requests from
// an on-path host.
#include <cstring>

#include "seal/association_exchange.h"
#include "support/node.h"

namespace cluster::seal {
namespace {

using test::kA;
using test::kB;
using test::Node;
using test::NodeKind;

class SealedRequestsTest : public test::EngineTest {
 protected:
  SealedRequestsTest() { kind_.credentials = test::credentials({"0123456789abcdef"}, Mode::auth); }

  NodeKind kind_;
};

/// No process is at its address: the network reports that for requests, which have no session to quote.
TEST_F(SealedRequestsTest, ThatNoProcessHasThePortIsBelievedOfRequestsToo) {
  Node a(network, kA, kB, 1000, nullptr, test::node_settings(), kind_);
  network.absent = kB;
  a.send();
  for (int i = 0; i < 1200 && a.logged("is lost") == 0; ++i) pass(a);
  EXPECT_EQ(a.logged("is lost"), 1u);
  EXPECT_EQ(a.counters().path_errors_unproven, 0u);
}

/// A host that sees no frame can know all else in a request: the id of the key is the same for all processes
/// of the job.
TEST_F(SealedRequestsTest, AnErrorThatQuotesARequestWithAnotherSaltIsNotBelieved) {
  Node a(network, kA, kB, 1000, nullptr, test::node_settings(), kind_);
  network.absent = kB;
  std::size_t requests = 0;
  std::vector<std::byte> quoted;  // whatever was sent last
  network.drop = [&](const test::FakeNetwork::Packet& packet, const SocketAddress& to) {
    if (packet.bytes[offsetof(wire::FrameHeader, kind)] ==
        static_cast<std::byte>(wire::FrameKind::association_request)) {
      constexpr std::size_t kSalt = sizeof(wire::FrameHeader) + offsetof(AssociationBlock, salt);
      quoted = packet.bytes;
      quoted[kSalt + requests++ % std::tuple_size_v<Salt>] ^= std::byte{1};
    }
    network.last_to_absent = quoted;
    return to == kB;
  };
  a.send();
  for (int i = 0; i < 2500; ++i) pass(a);
  EXPECT_EQ(a.logged("is lost"), 0u);
  EXPECT_NE(a.counters().path_errors_unproven, 0u);
  EXPECT_GE(requests, std::tuple_size_v<Salt>) << "each byte of it was wrong once";
  network.drop = nullptr;
}

/// For example of processes that are long gone. More requests than are answered are a flood, which the engine
/// must see.
TEST_F(SealedRequestsTest, RecordedRequestsThatAreNotAnsweredAreCounted) {
  Node b(network, kB, kA, 1000, nullptr, test::node_settings(), kind_);
  const JobKey& key = *kind_.credentials->keys[0];
  const std::uint64_t before = b.counters().refused_stale;
  constexpr std::uint64_t kRequests = 1500;
  for (std::uint64_t i = 1; i <= kRequests; ++i) {
    AssociationFrame request;
    request.key_id = key.id();
    request.sender.salt = {7};
    request.sender.addresses = {kA};
    request.to = kB;
    request.number = i;
    std::vector<std::byte> bytes = encode(request);
    set_tag(bytes, key.authenticate(JobKey::Purpose::request, tagged_part(bytes)));
    inject(kA, kB, bytes);
  }
  const std::uint64_t carried = network.carried;
  pass(b);
  const std::uint64_t answers = network.carried - carried;
  EXPECT_LT(answers, kRequests);
  EXPECT_EQ(b.counters().refused_stale - before, kRequests - answers);
}

}  // namespace
}  // namespace cluster::seal
