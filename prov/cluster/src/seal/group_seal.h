// Seals multicast frames from one sender to one group, with any number of receivers, which the sender need
// not know.
//
//   frame header | GroupSealBlock | what the frame carries ... | SealTrailer
//
// The keys of a sender's frames to a group are derived like those of a direction (association.h), with the
// group in the place of the receiver. Their input is the job key, mode, cipher, a salt that the sender draws
// for this group, the sender's name, and the group's address. Each frame carries the salt, so any frame can
// be opened first, also by a receiver that joins late. The checksum field tells which key of the job seals
// the frame, as in other frames.
//
// The key does not identify a member: each process that has the job key can seal in the name of every member.
// Nor can a receiver tell whether a frame is fresh: a frame that was recorded before the receiver joined the
// group opens once. The group accepts such a frame only if its stream and membership are those that the
// sending member has named over the flow between them.
//
// Invariants: each counter seals one frame only. A frame opens once at each receiver. Frames that do not open
// leave nothing behind, and the work for them is bounded.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/environment.h"
#include "link/multicast.h"
#include "seal/association.h"
#include "seal/job_key.h"

namespace cluster::seal {

/// Follows the header of a sealed group frame; never encrypted.
struct GroupSealBlock {
  std::uint8_t salt[16];
  std::uint8_t prefers_aes;  ///< 1: the cipher is AES-GCM; the sender alone chooses
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

/// Opens the frames of one group for an endpoint. `trials` belongs to the endpoint, and limits how often it
/// makes keys for unknown senders, which may be forged.
class GroupOpener {
 public:
  /// With this many senders, a new sender displaces the one that has been silent longest, if that one has
  /// been silent for kSilent. Recorded frames of earlier processes open, too. They must not displace a living
  /// member, whose recorded frames would then open again. Living members are never silent for that long.
  static constexpr std::size_t kSendersMax = 4096;
  static constexpr Duration kSilent = 10s;

  static constexpr int kTrialsAtOnce = 256;
  static constexpr Duration kTrialInterval = 100us;

  GroupOpener(const Credentials& credentials, const SocketAddress& group, std::shared_ptr<Allowance> trials)
      : credentials_(credentials), group_(group), trials_(std::move(trials)) {}

  /// `frame` is one whole frame with the flag kSealed. If the frame is genuine and new, open() cuts out its
  /// block and returns the rest: a sealed frame whose trailer has been verified. Otherwise open() counts the
  /// frame and returns nothing.
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
  std::unordered_map<Name, Sender, NameHash> senders_;  ///< senders of opened frames
  Time full_until_{};                                   ///< until then no sender may be displaced
};

/// Multicast reception for an endpoint with a key. It hands up only frames that a process with the key has
/// sealed for the group: each once, and opened. SealedLink seals the other direction. To the caller it looks
/// like multicast that loses all frames that are forged, altered, replayed or not sealed.
class SealedGroups final : public link::MulticastJoiner {
 public:
  /// `name` is that of this endpoint, whose own frames come back and are dropped.
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
