// Teams of one endpoint, with a transport that a test controls. It accepts every message, fails on request,
// and reports what was sent, received, canceled and discarded.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <set>
#include <vector>

#include "collective/collectives.h"

namespace cluster::collective::test {

/// Takes every message and completes none.
class FakeTransport final : public TeamEndpoint {
 public:
  bool has_multicast() const override { return multicast; }
  std::uint64_t open_group(const std::vector<SocketAddress>& members, std::uint64_t) override {
    groups.push_back(members);
    return kGroup;
  }
  bool group_joined(std::uint64_t) const override { return joined; }
  void expect(std::uint64_t, bool waits) override { waits ? ++awaited : --awaited; }
  void close_group(std::uint64_t) override { closed = true; }
  Status send(const protocol::SendOp& op) override {
    if (full.contains(op.to)) return Status::again;
    destinations.push_back(op.to);
    levels.push_back(op.completion_level);
    if (sends_until_exhausted-- == 0) throw std::bad_alloc();
    contexts.push_back(op.context);
    return Status::ok;
  }
  Status receive(const protocol::RecvOp& op) override {
    if (receives_until_exhausted-- == 0) throw std::bad_alloc();
    contexts.push_back(op.context);
    return Status::ok;
  }
  void cancel(const void* context) override {
    if (cancels_until_exhausted-- == 0) throw std::bad_alloc();
    canceled.insert(context);
  }
  std::size_t discard(std::uint64_t tag, std::uint64_t ignore) override {
    if (ignore == TeamTag::kAnyOfTeam) discarded.insert(TeamTag(tag).team());
    return 0;
  }

  static constexpr std::uint64_t kGroup = 4711;
  int sends_until_exhausted = -1;  ///< never
  int receives_until_exhausted = -1;
  int cancels_until_exhausted = -1;
  int awaited = 0;
  bool multicast = false;
  bool joined = false;
  bool closed = false;
  std::vector<std::vector<SocketAddress>> groups;
  std::set<std::uint64_t> full;  ///< sends to these must be repeated
  std::vector<std::uint64_t> destinations;
  std::vector<protocol::CompletionLevel> levels;
  std::vector<void*> contexts;
  std::set<std::uint64_t> discarded;
  std::set<const void*> canceled;
};

struct Listener final : JoinListener {
  void joined(Status status) override { outcomes.push_back(status); }
  std::vector<Status> outcomes;
};

class CollectivesTest : public testing::Test {
 protected:
  CollectivesTest() { collectives_.attach(nullptr, true); }

  static std::vector<MemberAddress> members(std::size_t count) {
    std::vector<MemberAddress> all;
    for (std::size_t i = 0; i < count; ++i) {
      const std::byte ip[4] = {std::byte{10}, {}, {}, static_cast<std::byte>(i + 1)};
      all.push_back({i, SocketAddress::v4(ip, 7000)});
    }
    return all;
  }
  bool arrives(std::uint64_t team, bool of_member = true) {
    return collectives_.wanted(TeamTag(team, 0, 0).bits(), 0, of_member);
  }
  void complete_everything(Status status) {
    for (void* const context : std::exchange(transport_.contexts, {})) collectives_.sent(context, status);
    collectives_.advance();
  }

  void complete_operations(Team& team) {
    for (int i = 0; i < 10 && !team.operations().empty(); ++i) complete_everything(Status::ok);
    EXPECT_TRUE(team.operations().empty());
  }

  FakeTransport transport_;
  Collectives collectives_{transport_};
  Listener listener_;
};

}  // namespace cluster::collective::test
