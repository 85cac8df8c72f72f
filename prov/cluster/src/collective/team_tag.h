// The tag of a message between members: its team, its operation within the team, its number within the
// operation. The identity of a team is computed from the names of its members, which all of them know, so
// that agreeing on one takes no message.
//
// Operations of one team are numbered modulo kOperations. A message of a later operation with the same number
// is matched later, since both sides begin operations of a team in one order.
#pragma once

#include <cstdint>

namespace cluster::collective {

class TeamTag {
 public:
  static constexpr unsigned kNumberBits = 12;
  static constexpr unsigned kOperationBits = 12;
  static constexpr unsigned kTeamShift = kNumberBits + kOperationBits;
  static constexpr unsigned kTeamBits = 64 - kTeamShift;
  /// The number of the operation that says that the team has failed.
  static constexpr std::uint32_t kFailure = 0xfff;
  static constexpr std::uint32_t kOperations = kFailure;
  /// The bits that all messages of a team do not share.
  static constexpr std::uint64_t kAnyOfTeam = 0xffffff;

  explicit TeamTag(std::uint64_t bits) : bits_(bits) {}
  TeamTag(std::uint64_t team, std::uint32_t operation, std::uint32_t number)
      : bits_(team << kTeamShift | static_cast<std::uint64_t>(operation) << kNumberBits | number) {}
  static TeamTag failure_of(std::uint64_t team) { return {team, kFailure, 0}; }
  static std::uint64_t team_from(std::uint64_t hash) { return hash >> (64 - kTeamBits); }

  std::uint64_t bits() const { return bits_; }
  std::uint64_t team() const { return bits_ >> kTeamShift; }
  bool is_failure() const { return (bits_ >> kNumberBits & kFailure) == kFailure; }

 private:
  std::uint64_t bits_;
};

}  // namespace cluster::collective
