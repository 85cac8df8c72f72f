// The members of a team by node, and the trees that lead through them. A tree goes from node to node first, by one
// member of each (its leader), and then inside each node, so that every byte crosses the network once per node.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "collective/schedule.h"

namespace cluster::collective {

inline constexpr Member kNoMember = ~Member{0};

/// Some members of a team, in an order that is the same at all of them.
using MemberList = std::vector<Member>;

/// Where one member stands in a tree.
struct Tree {
  Member parent = kNoMember;  ///< of the root: none
  std::vector<Member> children;
};

/// From the root to twice as many members in each round.
Tree binomial_tree(std::span<const Member> list, std::size_t self, std::size_t root);
/// From the root to the next one, and so on.
Tree chain_tree(std::span<const Member> list, std::size_t self, std::size_t root);
/// From the root to each.
Tree star_tree(std::span<const Member> list, std::size_t self, std::size_t root);

class TeamLayout {
 public:
  using MakeTree = Tree (*)(std::span<const Member> list, std::size_t self, std::size_t root);

  /// `node_of`: for each member a number that members of one node have in common; `self` is this one.
  TeamLayout(std::span<const std::size_t> node_of, Member self);

  std::size_t size() const { return place_.size(); }
  Member self() const { return self_; }
  /// All members, those of one node behind each other.
  const MemberList& by_node() const { return by_node_; }
  /// The first member of each node.
  const MemberList& leaders() const { return leaders_; }
  /// The first member of this node.
  Member leader() const { return leaders_[node()]; }
  bool leads() const { return leader() == self_; }
  /// The members of this node, and where this one stands among them.
  const MemberList& neighbors() const { return nodes_[place_[self_].node]; }
  std::size_t node() const { return place_[self_].node; }
  std::size_t node_of(Member member) const { return place_[member].node; }
  std::size_t position_in_node() const { return place_[self_].position; }
  /// The place of this member in by_node().
  std::size_t position_by_node() const;

  /// A tree over the members of this node; at its top is the root if it is one of them, else their leader.
  Tree tree_here(Member root) const;
  /// A tree over all members: of the shape `between` from node to node, and binomial inside each.
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
