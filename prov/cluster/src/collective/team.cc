#include "collective/team.h"

#include <array>
#include <cstring>

#include "base/siphash.h"

namespace cluster::collective {
namespace {

/// An arbitrary key, which must be the same in all processes.
constexpr std::uint64_t kKeyLow = 0x636f6c6c65637469;
constexpr std::uint64_t kKeyHigh = 0x766573206f662061;

std::vector<std::size_t> nodes_of(std::span<const MemberAddress> members) {
  std::vector<std::size_t> nodes;
  for (const MemberAddress& member : members) {
    const auto first = std::find_if(members.begin(), members.end(), [&](const MemberAddress& other) {
      return other.name.same_host(member.name);
    });
    nodes.push_back(static_cast<std::size_t>(first - members.begin()));
  }
  return nodes;
}

template <typename Matches>
Member first_of(std::span<const MemberAddress> members, Matches&& matches) {
  const auto found = std::find_if(members.begin(), members.end(), matches);
  return found == members.end() ? kNoMember : static_cast<Member>(found - members.begin());
}

}  // namespace

std::uint64_t Team::identity(std::span<const MemberAddress> members, std::uint64_t key,
                             std::uint64_t instance) {
  std::vector<std::uint64_t> words{instance, key};
  for (const MemberAddress& member : members) {
    std::array<std::uint64_t, 3> name{};
    const ConstBytes ip = member.name.ip();
    std::memcpy(name.data(), ip.data(), ip.size());
    name[2] = member.name.port();
    words.insert(words.end(), name.begin(), name.end());
  }
  return TeamTag::team_from(SipHash(kKeyLow, kKeyHigh)(words));
}

Team::Team(std::uint64_t id, std::vector<MemberAddress> members, Member self)
    : id_(id), members_(std::move(members)), layout_(nodes_of(members_), self) {}

Member Team::find(std::uint64_t handle) const {
  return first_of(members_, [&](const MemberAddress& member) { return member.handle == handle; });
}

Member Team::find(const SocketAddress& name) const {
  return first_of(members_, [&](const MemberAddress& member) { return member.name == name; });
}

std::vector<SocketAddress> Team::leaders() const {
  std::vector<SocketAddress> names;
  for (const Member leader : layout_.leaders()) names.push_back(members_[leader].name);
  return names;
}

Operation& Team::begin(Schedule schedule) {
  operations_.push_back(std::make_unique<Operation>(*this, next_, std::move(schedule)));
  next_ = (next_ + 1) % TeamTag::kOperations;
  Operation& operation = *operations_.back();
  for (Step step = 0; step < operation.tickets.size(); ++step) operation.tickets[step] = {&operation, step};
  return operation;
}

}  // namespace cluster::collective
