// Frames by multicast that are sealed: one sender, one group, any number of receivers, none of which the sender need know.
//
//   frame header | GroupSealBlock | what the frame carries ... | SealTrailer
//
// The keys of a sender's frames to a group are made like those of a direction (association.h), with the group in the place of the
// receiver: job key, mode, cipher, a salt that the sender draws for this group, its name, the group's address. The salt is in each
// frame, so the frames of a sender open from the first one on, also for a member that comes late. Which key of the job
// they are sealed with the checksum field says, as in other frames.
//
// The key is the group's, not a member's: each process that has the job key can seal in the name of every member. Nothing here is fresh for
// a receiver, either: a frame that was recorded before it opened the group opens once. Group takes it only if stream and membership
// are those that its member has named over the flow between them.
//
// Invariants: a counter is sealed once. A frame opens once for a receiver of the group. Nothing is kept of frames that do not open,
// and what is tried for them is bounded.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/environment.h"
#include "seal/association.h"

namespace cluster::seal {

/// Behind the header of a sealed frame of a group; never encrypted.
struct GroupSealBlock {
  std::uint8_t salt[16];
  std::uint8_t prefers_aes;  ///< 1: the cipher is AES-GCM, which the sender alone chooses
  std::uint8_t reserved[3];
};
static_assert(sizeof(GroupSealBlock) == 20);

/// What an endpoint seals for one group.
class GroupSender {
 public:
  GroupSender(const Credentials& credentials, const Party& ours, const SocketAddress& group, Random& random);

  Association& association() { return association_; }
  ConstBytes block() const { return as_bytes(&block_, sizeof block_); }

 private:
  GroupSender(const Credentials& credentials, const Party& sender, const SocketAddress& group);

  GroupSealBlock block_{};
  Association association_;
};

/// Keys are made for senders that are not known, or claim to be others, at most so often by one endpoint.
class GroupTrials {
 public:
  static constexpr int kAtOnce = 256;
  static constexpr Duration kInterval = 100us;

  bool allowed(Time now);

 private:
  Time from_{};  ///< each trial takes kInterval of the time since then
};

/// What an endpoint opens of one group. `trials` are the endpoint's.
class GroupOpener {
 public:
  /// Of so many senders at once, the one that has been silent longest gives way, and for at least kSilent: recorded frames of earlier
  /// processes open, too, and must not make a member forgotten of which frames were recorded as well. Members repeat themselves more often.
  static constexpr std::size_t kSendersMax = 4096;
  static constexpr Duration kSilent = 10s;

  GroupOpener(const Credentials& credentials, const SocketAddress& group, std::shared_ptr<GroupTrials> trials)
      : credentials_(credentials), group_(group), trials_(std::move(trials)) {}

  /// `frame` is one whole frame with the flag kSealed. If it is genuine and new, its block is cut out where it lies, and what is
  /// left is a sealed frame whose trailer has been verified. Otherwise it is empty, and counted.
  Bytes open(Time now, Bytes frame, const SocketAddress& from, Counters& counters);
  std::size_t senders() const { return senders_.size(); }

 private:
  struct Name {
    SocketAddress sender;
    Salt salt;
    std::uint32_t id;  ///< sender_id()
    friend bool operator==(const Name&, const Name&) = default;
  };
  struct NameHash {
    std::size_t operator()(const Name& name) const { return name.sender.hash() ^ name.id; }
  };

  struct Sender {
    std::unique_ptr<Association> association;
    Time heard{};
  };

  bool make_space(Time now);
  Association::Verdict open_first(Time now, Bytes frame, const Name& name, const Party& sender);

  const Credentials credentials_;
  const SocketAddress group_;
  std::shared_ptr<GroupTrials> trials_;
  std::unordered_map<Name, Sender, NameHash> senders_;  ///< of which a frame has been opened
  Time full_until_{};                                   ///< none gives way before
};

}  // namespace cluster::seal
