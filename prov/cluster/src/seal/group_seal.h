// Seals multicast frames from one sender to one group. The group has any number of receivers, and the sender
// need not know them.
//
//   frame header | GroupSealBlock | what the frame carries ... | SealTrailer
//
// The keys for a sender's frames to a group are derived like the keys of a direction (association.h), with
// the group as the receiver. The input is the job key, the mode, the cipher, a salt that the sender generates
// for this group, the sender's name, and the group's address. Each frame carries the salt, so a receiver that
// joins late can open every frame that it receives. As in other frames, the checksum field says which key of
// the job seals the frame.
//
// The key does not identify a member: each process with the job key can impersonate every member. A receiver
// also cannot tell whether a frame is fresh: a frame that was recorded before the receiver joined the group
// opens once. So the receiving group (group/group.h) checks the stream and the membership that the frame
// names. The group accepts the frame only if the sender has named the same stream and membership over its
// flow to the receiver.
//
// Invariants: each counter seals only one frame. A frame opens at most once at each receiver. Frames that do
// not open use no memory, and the work for them is bounded.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/environment.h"
#include "link/multicast.h"
#include "seal/association.h"
#include "seal/job_key.h"

namespace cluster::seal {

/// The block after the header of a sealed group frame. The block is not encrypted in any mode.
struct GroupSealBlock {
  std::uint8_t salt[16];
  std::uint8_t prefers_aes;  ///< 1 if the cipher is AES-GCM; the sender alone chooses the cipher
  std::uint8_t reserved[3];
};
static_assert(sizeof(GroupSealBlock) == 20);

/// Seals the frames of an endpoint to one group.
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

/// Opens the frames of one group for an endpoint. All groups of the endpoint share `trials`, which limits how
/// many keys are derived for unknown senders, because their frames may be forged.
class GroupOpener {
 public:
  /// If this many senders are known, a new sender displaces the sender that has been silent for the longest
  /// time. Only a sender that has been silent for kSilent can be displaced. Recorded frames of earlier
  /// processes also open, so these processes count as new senders. They must not displace an active member.
  /// Otherwise recorded frames of that member would open again. An active member is never silent for kSilent.
  static constexpr std::size_t kSendersMax = 4096;
  static constexpr Duration kSilent = 10s;

  static constexpr int kTrialsAtOnce = 256;
  static constexpr Duration kTrialInterval = 100us;

  GroupOpener(const Credentials& credentials, const SocketAddress& group, std::shared_ptr<Allowance> trials)
      : credentials_(credentials), group_(group), trials_(std::move(trials)) {}

  /// Opens one whole frame with the flag kSealed. If the frame is genuine and new, cuts out its block and
  /// returns the rest, which still has the trailer. Otherwise counts the frame as refused and returns
  /// nothing.
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
  std::shared_ptr<Allowance> trials_;
  std::unordered_map<Name, Sender, NameHash> senders_;  ///< the senders from which a frame has opened
  Time full_until_{};                                   ///< before this time no sender may be displaced
};

/// Receives multicast frames for an endpoint with a key. Opens the frames, and returns only those that a
/// process with the key has sealed for the group, each of them once. (SealedLink seals the frames that the
/// endpoint sends.) To the caller, the network seems to lose all frames that are forged, altered, replayed or
/// not sealed.
class SealedGroups final : public link::MulticastJoiner {
 public:
  /// `name` is the name of this endpoint. Frames from this name also arrive, and are dropped.
  SealedGroups(std::unique_ptr<link::MulticastJoiner> inner, Credentials credentials,
               const SocketAddress& name, const Environment& environment)
      : inner_(std::move(inner)),
        credentials_(std::move(credentials)),
        name_(name),
        environment_(environment) {}

  std::unique_ptr<link::MulticastReceiver> join(const SocketAddress& group,
                                                std::span<const SocketAddress> members,
                                                std::string& reason) override;

 private:
  std::unique_ptr<link::MulticastJoiner> inner_;
  const Credentials credentials_;
  const SocketAddress name_;
  Environment environment_;
  std::shared_ptr<Allowance> trials_ =
      std::make_shared<Allowance>(GroupOpener::kTrialInterval, GroupOpener::kTrialsAtOnce);
};

}  // namespace cluster::seal
