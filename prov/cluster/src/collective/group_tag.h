// The tag of a message between members: its group, its operation within the group, its number within the
// operation. The identity of a group is computed from the names of its members, which all of them know, so
// that agreeing on one takes no message.
//
// Operations of one group are numbered modulo kOperations. A message of a later operation with the same number
// is matched later, since both sides begin operations of a group in one order.
#pragma once

#include <cstdint>

namespace cluster::collective {

class GroupTag {
 public:
  static constexpr unsigned kNumberBits = 12;
  static constexpr unsigned kOperationBits = 12;
  static constexpr unsigned kGroupShift = kNumberBits + kOperationBits;
  static constexpr unsigned kGroupBits = 64 - kGroupShift;
  /// The number of the operation that says that the group has failed.
  static constexpr std::uint32_t kFailure = 0xfff;
  static constexpr std::uint32_t kOperations = kFailure;
  /// The bits that all messages of a group do not share.
  static constexpr std::uint64_t kAnyOfGroup = 0xffffff;

  explicit GroupTag(std::uint64_t bits) : bits_(bits) {}
  GroupTag(std::uint64_t group, std::uint32_t operation, std::uint32_t number)
      : bits_(group << kGroupShift | static_cast<std::uint64_t>(operation) << kNumberBits | number) {}
  static GroupTag failure_of(std::uint64_t group) { return {group, kFailure, 0}; }
  static std::uint64_t group_from(std::uint64_t hash) { return hash >> (64 - kGroupBits); }

  std::uint64_t bits() const { return bits_; }
  std::uint64_t group() const { return bits_ >> kGroupShift; }
  bool is_failure() const { return (bits_ >> kNumberBits & kFailure) == kFailure; }

 private:
  std::uint64_t bits_;
};

}  // namespace cluster::collective
