// The addresses from which the frames of one peer arrive although the peer does not list them. A router
// between the two nodes translates the peer's addresses (docs/protocol.md 1.6). The router may change its
// translation at any time, so a source is only a way to the peer. To the user of the link, the peer has one
// of the addresses that it lists.
//
// A source is proven once the peer has answered a keep-alive that was sent to the source. Frames to a listed
// address go to the proven source from which the peer's frames came last over the same link.
//
// Invariant: for each link and each listed address, at most one source is in use, and it is proven.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/address.h"
#include "base/units.h"

namespace cluster::seal {

struct ObservedSource {
  SocketAddress address;
  std::uint8_t link = 0;   ///< the link of this side over which the frames arrive
  std::size_t listed = 0;  ///< index of the listed address that the router translates; a guess until proven
  std::uint64_t question =
      0;  ///< counter of the last keep-alive to the source while it is unanswered, else 0
  Time next_question{};
  bool proven = false;
  bool used = false;  ///< frames to the listed address go there
};

class ObservedSources {
 public:
  /// The largest number of sources of one peer: two for each pair of rails that is in use.
  static constexpr std::size_t kMax = 16;

  /// Returns true if frames to the peer may have to go to a source.
  bool any_used() const { return any_used_; }
  bool empty() const { return sources_.empty(); }
  ObservedSource* find(const SocketAddress& address, std::uint8_t link);
  /// Returns the proven source with this address, whatever its link is, or null.
  const ObservedSource* at(const SocketAddress& address) const;
  /// Returns the source. Creates it if there is none, in the place of another one if there are too many.
  ObservedSource& note(const SocketAddress& address, std::uint8_t link);
  /// Returns the source with this unanswered question, or null.
  ObservedSource* asked(const SocketAddress& address, std::uint64_t question);
  /// Returns the source to which frames to the listed address with this index go over this link. Returns null
  /// if they go to the listed address itself.
  const ObservedSource* way_to(std::size_t listed, std::uint8_t link) const;
  /// Called when a frame of the peer has arrived from the source, which must be proven.
  void use(ObservedSource& source);
  /// Called when a frame of the peer has arrived over this link from the listed address with this index.
  void use_listed(std::size_t listed, std::uint8_t link);
  void remove(const SocketAddress& address);

 private:
  void review();

  std::vector<ObservedSource> sources_;  ///< the source that was noted first is the first
  bool any_used_ = false;
};

}  // namespace cluster::seal
