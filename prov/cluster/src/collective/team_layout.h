// The members of a team by node, and the trees that connect them. A tree first connects the nodes through one
// member of each (its leader), and then the members inside each node. So every byte crosses the network once
// per node.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "collective/schedule.h"

namespace cluster::collective {

inline constexpr Member kNoMember = ~Member{0};

/// Some members of a team, in the same order at all of them.
using MemberList = std::vector<Member>;

/// The place of one member in a tree.
struct Tree {
  Member parent = kNoMember;  ///< kNoMember at the root
  std::vector<Member> children;
};

/// A tree in which each round reaches twice as many members as the round before.
Tree binomial_tree(std::span<const Member> list, std::size_t self, std::size_t root);
/// A tree from the root to the next member, and from each member to the next.
Tree chain_tree(std::span<const Member> list, std::size_t self, std::size_t root);
/// A tree from the root to every other member.
Tree star_tree(std::span<const Member> list, std::size_t self, std::size_t root);

class TeamLayout {
 public:
  using MakeTree = Tree (*)(std::span<const Member> list, std::size_t self, std::size_t root);

  /// `node_of` has one number for each member, the same for members of one node. `self` is this member.
  TeamLayout(std::span<const std::size_t> node_of, Member self);

  std::size_t size() const { return place_.size(); }
  Member self() const { return self_; }
  /// All members, grouped by node.
  const MemberList& by_node() const { return by_node_; }
  /// The first member of each node.
  const MemberList& leaders() const { return leaders_; }
  /// The first member of this node.
  Member leader() const { return leaders_[node()]; }
  bool leads() const { return leader() == self_; }
  /// The members of this node. position_in_node() is this member's place among them.
  const MemberList& neighbors() const { return nodes_[place_[self_].node]; }
  std::size_t node() const { return place_[self_].node; }
  std::size_t node_of(Member member) const { return place_[member].node; }
  std::size_t position_in_node() const { return place_[self_].position; }
  /// Returns the place of this member in by_node().
  std::size_t position_by_node() const;

  /// Returns a tree over the members of this node. Its top is the root if the root is on this node, else the
  /// node's leader.
  Tree tree_here(Member root) const;
  /// Returns a tree over all members: it has the shape `between` between nodes, and is binomial inside each
  /// node.
  Tree tree(Member root, MakeTree between) const;

 private:
  struct Place {
    std::size_t node;
    std::size_t position;
  };

  Member self_;
  std::vector<Place> place_;
  std::vector<MemberList> nodes_;
  MemberList leaders_;
  MemberList by_node_;
};

}  // namespace cluster::collective
