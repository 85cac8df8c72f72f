// The gate: frames of every kind pass, and nothing else does. Every bit of a frame is flipped once;
// frames with a right checksum and wrong content are refused as well.
#include "wire/admit.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "print/print.h"
#include "wire/control.h"

namespace cluster::wire {
namespace {

using namespace frame_flag;
using Page = std::vector<std::byte>;

/// Reads from memory of exactly that size, so that reading beyond it is caught; `view` refers to
/// nothing afterwards.
Refusal admit_exactly(const Page& page, FrameView& view) {
  const auto exact = std::make_unique<std::byte[]>(page.size());
  if (!page.empty()) std::memcpy(exact.get(), page.data(), page.size());
  return admit({exact.get(), page.size()}, view);
}

Page sign(FrameHeader header, const Page& behind) {
  header.magic = kMagic;
  header.version = kVersion;
  if (header.length == 0) header.length = static_cast<std::uint16_t>(sizeof header + behind.size());
  Page page(sizeof header);
  std::memcpy(page.data(), &header, sizeof header);
  page.insert(page.end(), behind.begin(), behind.end());
  const ConstBytes whole = page;
  header.checksum = frame_checksum({&whole, 1});
  std::memcpy(page.data(), &header, sizeof header);
  return page;
}

FrameHeader header_of(FrameKind kind, std::uint8_t flags) {
  FrameHeader header{};
  header.kind = static_cast<std::uint8_t>(kind);
  header.flags = flags;
  header.session = 0xABCD;
  header.sequence = 17;
  header.transmission = 19;
  header.ack = 4;
  header.largest_acked = 3;
  header.ack_delay = 7;
  return header;
}

Page opening_block() {
  Opening opening;
  opening.session = 9;
  opening.epoch = 77;
  const std::byte ip[4] = {std::byte{10}, std::byte{0}, std::byte{0}, std::byte{1}};
  opening.name = SocketAddress::v4(ip, 5000);
  opening.frame_max = 1472;
  opening.window = 512;
  OpeningBlock block;
  encode(opening, block);
  Page page(sizeof block);
  std::memcpy(page.data(), &block, sizeof block);
  return page;
}

Page ack_block() {
  Ack ack;
  ack.spurious = 2;
  ack.count = 2;
  ack.ranges[0] = {{6}, {9}};
  ack.ranges[1] = {{11}, {12}};
  Page page(ack_block_size(2));
  encode(ack, page.data());
  return page;
}

Page segment_bytes() {
  Segment segment;
  segment.length = 5;
  Page page(encoded_size(segment) + 5);
  encode(segment, page.data());
  return page;
}

Page joined(std::initializer_list<Page> parts) {
  Page page;
  for (const Page& part : parts) page.insert(page.end(), part.begin(), part.end());
  return page;
}

Page full_frame() {
  return sign(header_of(FrameKind::flow, kAll), joined({opening_block(), ack_block(), segment_bytes()}));
}

TEST(Admit, ReadsAFullFrame) {
  FrameView view;
  ASSERT_EQ(admit_exactly(full_frame(), view), Refusal::none);
  EXPECT_EQ(view.kind, FrameKind::flow);
  EXPECT_EQ(view.session, 0xABCDu);
  EXPECT_EQ(view.sequence.value, 17u);
  EXPECT_EQ(view.transmission.value, 19u);
  EXPECT_EQ(view.ack.value, 4u);
  EXPECT_EQ(view.largest_acked.value, 3u);
  EXPECT_EQ(view.ack_delay_ns, 7u * 1024);
  EXPECT_TRUE(view.has_opening && view.has_ranges && view.sequenced() && view.in_order() && view.ack_now());
  EXPECT_EQ(view.opening.epoch, 77u);
  EXPECT_EQ(view.ranges.count, 2u);
  EXPECT_EQ(view.segments.size(), segment_bytes().size());
}

TEST(Admit, ReadsOneOfSeveralFramesBackToBack) {
  const Page one = full_frame();
  const Page two = joined({one, one});
  FrameView view;
  ASSERT_EQ(admit_exactly(two, view), Refusal::none);
  EXPECT_EQ(view.length, one.size());
  EXPECT_EQ(admit(ConstBytes(two).subspan(view.length), view), Refusal::none);
}

TEST(Admit, RefusesEveryFlippedBit) {
  const Page good = full_frame();
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    Page bad = good;
    bad[bit / 8] ^= std::byte{1} << (bit % 8);
    FrameView view;
    EXPECT_NE(admit_exactly(bad, view), Refusal::none) << "bit " << bit;
  }
}

TEST(Admit, RefusesEveryPrefix) {
  const Page good = full_frame();
  for (std::size_t size = 0; size < good.size(); ++size) {
    FrameView view;
    EXPECT_EQ(admit_exactly(Page(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)), view),
              Refusal::malformed);
  }
}

TEST(Admit, TellsDamageFromGarbage) {
  Page bad = full_frame();
  bad.back() ^= std::byte{1};
  FrameView view;
  EXPECT_EQ(admit_exactly(bad, view), Refusal::checksum);
  bad[0] ^= std::byte{1};
  EXPECT_EQ(admit_exactly(bad, view), Refusal::malformed);
}

TEST(Admit, RefusesNonsenseWithARightChecksum) {
  const Page segments = segment_bytes();
  const auto refused = [](const FrameHeader& header, const Page& behind) {
    FrameView view;
    return admit_exactly(sign(header, behind), view) == Refusal::malformed;
  };
  const auto flow = [](std::uint8_t flags) { return header_of(FrameKind::flow, flags); };
  EXPECT_FALSE(refused(flow(kSequenced), segments));
  EXPECT_FALSE(refused(flow(kAcknowledges), {}));
  EXPECT_TRUE(refused(flow(kSequenced), {})) << "sequenced, but nothing in it";
  EXPECT_TRUE(refused(flow(0), segments)) << "bytes that belong to nothing";
  EXPECT_TRUE(refused(flow(kOrdered), {}));
  EXPECT_TRUE(refused(flow(kAckNow), {}));
  EXPECT_TRUE(refused(flow(kAckBlock), ack_block())) << "ranges without an acknowledgement";
  EXPECT_TRUE(refused(flow(kOpening), Page(47)));
  EXPECT_TRUE(refused(flow(128 | kSequenced), segments)) << "an unknown flag";
  FrameHeader kind = flow(kSequenced);
  kind.kind = 7;
  EXPECT_TRUE(refused(kind, segments));
  kind.kind = 0;
  EXPECT_TRUE(refused(kind, segments));
  EXPECT_TRUE(refused(header_of(FrameKind::alive, 0), segments));
  EXPECT_TRUE(refused(header_of(FrameKind::fin, kSequenced), segments));
  EXPECT_TRUE(refused(header_of(FrameKind::reset, 0), Page(24))) << "a reset without a reason";
  EXPECT_TRUE(refused(header_of(FrameKind::reset, 0), {}));
  FrameHeader brief = flow(0);
  brief.length = 31;
  EXPECT_TRUE(refused(brief, {}));
}

TEST(Admit, SurvivesNoiseBehindARightHeader) {
  std::uint32_t state = 7;
  std::size_t passed = 0;
  for (int i = 0; i < 20'000; ++i) {
    Page behind((state >> 7) % 200);
    for (std::byte& byte : behind) {
      state = state * 1664525 + 1013904223;
      byte = static_cast<std::byte>(state >> 24);
    }
    state = state * 1664525 + 1013904223;
    FrameHeader header = header_of(static_cast<FrameKind>((state >> 20) % 7), (state >> 10) & kAll);
    const Page page = sign(header, behind);
    FrameView view;
    if (admit_exactly(page, view) == Refusal::none && admit(page, view) == Refusal::none) {
      ++passed;
      EXPECT_FALSE(print(view).empty());
    }
  }
  EXPECT_GT(passed, 0u);
}

// --- the second entrance, for frames of one short message ---

constexpr std::uint8_t kLone = kSequenced | kOrdered | kAcknowledges;

Page eager(const EagerHeader& message) {
  Page page(message.size());
  message.write(page.data());
  for (std::uint32_t i = 0; i < message.length; ++i) page.push_back(static_cast<std::byte>(i + 1));
  return page;
}

bool lone(const Page& page, LoneFrame& frame) {
  const auto exact = std::make_unique<std::byte[]>(page.size());
  if (!page.empty()) std::memcpy(exact.get(), page.data(), page.size());
  return admit_lone({exact.get(), page.size()}, frame);
}

TEST(AdmitLone, ReadsAFrameOfOneMessage) {
  const EagerHeader message{.length = 5, .tagged = true, .has_data = true, .tag = 6, .data = 7};
  const Page page = sign(header_of(FrameKind::flow, kLone | kAckNow), eager(message));
  LoneFrame frame;
  ASSERT_TRUE(admit_lone(page, frame));
  EXPECT_EQ(session_of_lone(page), 0xABCDu);
  EXPECT_EQ(frame.session, 0xABCDu);
  EXPECT_EQ(frame.sequence, Sequence{17});
  EXPECT_EQ(frame.transmission, TransmissionNumber{19});
  EXPECT_EQ(frame.ack, Sequence{4});
  EXPECT_EQ(frame.largest_acked, TransmissionNumber{3});
  EXPECT_TRUE(frame.knows_ack_delay());
  EXPECT_EQ(frame.ack_delay_ns(), 7 * kAckDelayUnit);
  EXPECT_TRUE(frame.ack_now);
  EXPECT_EQ(frame.message.length, 5u);
  EXPECT_EQ(frame.message.tag, 6u);
  EXPECT_EQ(frame.message.data, 7u);
  EXPECT_EQ(frame.payload, page.data() + page.size() - 5);
}

TEST(AdmitLone, ReadsTheShortestMessages) {
  LoneFrame frame;
  EXPECT_TRUE(lone(sign(header_of(FrameKind::flow, kLone), eager({})), frame));
  EXPECT_FALSE(frame.ack_now);
  EXPECT_TRUE(lone(sign(header_of(FrameKind::flow, kLone), eager({.tagged = true})), frame));
}

TEST(AdmitLone, DoesNotKnowALongDelay) {
  FrameHeader header = header_of(FrameKind::flow, kLone);
  header.ack_delay = 0xFFFF;
  LoneFrame frame;
  ASSERT_TRUE(lone(sign(header, eager({})), frame));
  EXPECT_FALSE(frame.knows_ack_delay());
}

TEST(AdmitLone, ReadsWhatEncodeLoneHasWritten) {
  const EagerHeader message{.length = 5, .tagged = true, .tag = 6};
  Page page = sign(header_of(FrameKind::flow, kLone | kAckNow), eager(message));
  const Page general = page;
  const LoneNumbers numbers{
      7, 0xABCD, Sequence{17}, TransmissionNumber{19}, Sequence{4}, TransmissionNumber{3}};
  std::fill_n(page.begin(), sizeof(FrameHeader), std::byte{0xFF});
  encode_lone(numbers, kLone | kAckNow, page.data(), page.size());
  EXPECT_EQ(page, general);
}

TEST(AdmitLone, RefusesEveryFlippedBit) {
  const Page page = sign(header_of(FrameKind::flow, kLone), eager({.length = 9, .tagged = true, .tag = 6}));
  for (std::size_t bit = 0; bit < page.size() * 8; ++bit) {
    Page flipped = page;
    flipped[bit / 8] ^= std::byte{1} << (bit % 8);
    LoneFrame frame;
    EXPECT_FALSE(lone(flipped, frame)) << "bit " << bit;
  }
}

TEST(AdmitLone, RefusesEveryPrefixAndWhateverFollows) {
  Page page = sign(header_of(FrameKind::flow, kLone), eager({.length = 9, .tagged = true, .tag = 6}));
  LoneFrame frame;
  for (std::size_t size = 0; size < page.size(); ++size)
    EXPECT_FALSE(lone(Page(page.begin(), page.begin() + static_cast<std::ptrdiff_t>(size)), frame));
  page.push_back(std::byte{0});
  EXPECT_FALSE(lone(page, frame));
}

TEST(AdmitLone, RefusesEverythingElseWithARightChecksum) {
  const Page message = eager({.length = 9, .tagged = true, .tag = 6});
  LoneFrame frame;
  for (const int flags : {kSequenced | kAcknowledges, kSequenced | kOrdered, kLone | kOpening,
                          kLone | kAckBlock, kLone | kSealed, kLone | kPart, 0}) {
    EXPECT_FALSE(lone(sign(header_of(FrameKind::flow, static_cast<std::uint8_t>(flags)), message), frame));
  }
  EXPECT_FALSE(lone(sign(header_of(FrameKind::fin, kLone), message), frame));
  FrameHeader nameless = header_of(FrameKind::flow, kLone);
  nameless.session = 0;
  EXPECT_FALSE(lone(sign(nameless, message), frame));
  Page two = message;
  two.insert(two.end(), message.begin(), message.end());
  EXPECT_FALSE(lone(sign(header_of(FrameKind::flow, kLone), two), frame));
  Page other = message;
  other[0] = static_cast<std::byte>(SegmentKind::announce);
  EXPECT_FALSE(lone(sign(header_of(FrameKind::flow, kLone), other), frame));
  Page confirmed = message;
  confirmed[1] |= std::byte{segment_flag::kConfirm};
  EXPECT_FALSE(lone(sign(header_of(FrameKind::flow, kLone), confirmed), frame));
  Page short_of_tag = eager({});
  short_of_tag[1] |= std::byte{segment_flag::kTagged};
  EXPECT_FALSE(lone(sign(header_of(FrameKind::flow, kLone), short_of_tag), frame));
}

Page write_of(std::uint32_t length, std::uint32_t id = 3) {
  Page page(WriteHeader::size() + length, std::byte{7});
  WriteHeader{.length = length, .id = id, .address = 4, .key = 5}.write(page.data());
  return page;
}

Page answer_and(const Page& rest) {
  Page page(AnswerHeader::size());
  AnswerHeader{9}.write(page.data());
  page.insert(page.end(), rest.begin(), rest.end());
  return page;
}

TEST(AdmitLone, ReadsAWrite) {
  const Page page = sign(header_of(FrameKind::flow, kLone | kAckNow), write_of(8));
  LoneFrame frame;
  ASSERT_TRUE(admit_lone(page, frame));
  EXPECT_EQ(frame.content, LoneFrame::Content::write);
  EXPECT_FALSE(frame.answers);
  EXPECT_FALSE(frame.only_message());
  EXPECT_EQ(frame.write.length, 8u);
  EXPECT_EQ(frame.write.id, 3u);
  EXPECT_EQ(frame.write.address, 4u);
  EXPECT_EQ(frame.write.key, 5u);
  EXPECT_EQ(frame.payload, page.data() + page.size() - 8);
}

TEST(AdmitLone, ReadsAnAnswerBeforeAWriteBeforeAMessageAndAlone) {
  using Content = LoneFrame::Content;
  LoneFrame frame;
  ASSERT_TRUE(lone(sign(header_of(FrameKind::flow, kLone), answer_and(write_of(8))), frame));
  EXPECT_TRUE(frame.answers && frame.content == Content::write && frame.answer.id == 9);
  ASSERT_TRUE(lone(sign(header_of(FrameKind::flow, kLone), answer_and(eager({.length = 5}))), frame));
  EXPECT_TRUE(frame.answers && frame.content == Content::message && frame.answer.id == 9);
  EXPECT_FALSE(frame.only_message());
  EXPECT_EQ(frame.message.length, 5u);
  ASSERT_TRUE(lone(sign(header_of(FrameKind::flow, kSequenced | kAcknowledges), answer_and({})), frame));
  EXPECT_TRUE(frame.answers && frame.content == Content::nothing && frame.answer.id == 9);
  ASSERT_TRUE(lone(sign(header_of(FrameKind::flow, kLone), eager({.length = 5})), frame));
  EXPECT_TRUE(frame.only_message()) << "nothing is left of the last frame";
}

TEST(AdmitLone, RefusesOtherWritesAndAnswers) {
  LoneFrame frame;
  const auto refuses = [&](const Page& segments, int flags = kLone) {
    return !lone(sign(header_of(FrameKind::flow, static_cast<std::uint8_t>(flags)), segments), frame);
  };
  EXPECT_TRUE(refuses(write_of(8), kSequenced | kAcknowledges));
  EXPECT_TRUE(refuses(answer_and({}))) << "answers alone are not ordered";
  EXPECT_TRUE(refuses(answer_and(answer_and({}))));
  EXPECT_TRUE(refuses(answer_and(answer_and(write_of(8)))));
  for (const std::uint8_t flag :
       {segment_flag::kData, segment_flag::kMore, segment_flag::kContinues, segment_flag::kUnanswered}) {
    Page page = write_of(16);
    page[1] |= std::byte{flag};
    EXPECT_TRUE(refuses(page)) << int{flag};
  }
  Page part = write_of(8);
  part[20] = std::byte{9};  // the lowest byte of `total`
  EXPECT_TRUE(refuses(part));
  Page two = write_of(8);
  const Page second = write_of(8);
  two.insert(two.end(), second.begin(), second.end());
  EXPECT_TRUE(refuses(two));
}

TEST(AdmitLone, RefusesEveryPrefixAndFlippedBitOfAnAnswerAndAWrite) {
  const Page page = sign(header_of(FrameKind::flow, kLone), answer_and(write_of(8)));
  LoneFrame frame;
  for (std::size_t size = 0; size < page.size(); ++size)
    EXPECT_FALSE(lone(Page(page.begin(), page.begin() + static_cast<std::ptrdiff_t>(size)), frame));
  for (std::size_t size = AnswerHeader::size(); size < AnswerHeader::size() + WriteHeader::size(); ++size) {
    const Page whole = answer_and(write_of(8));
    if (size == AnswerHeader::size()) continue;
    const Page segments(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(lone(sign(header_of(FrameKind::flow, kLone), segments), frame)) << size;
  }
  for (std::size_t bit = 0; bit < page.size() * 8; ++bit) {
    Page flipped = page;
    flipped[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(lone(flipped, frame)) << "bit " << bit;
  }
}

TEST(Control, FramesAreAdmittedAndCarryTheirFields) {
  FrameView offending;
  ASSERT_EQ(admit_exactly(full_frame(), offending), Refusal::none);
  FrameView view;
  const ControlFrame stale = ControlFrame::reset(offending, ResetReason::stale_epoch, 99);
  ASSERT_EQ(admit(stale.bytes(), view), Refusal::none);
  EXPECT_EQ(view.kind, FrameKind::reset);
  EXPECT_EQ(view.session, 0u);
  EXPECT_EQ(view.reset.session, 0xABCDu);
  EXPECT_EQ(view.reset.sequence, 17u);
  EXPECT_EQ(view.reset.transmission, 19u);
  EXPECT_EQ(view.reset.epoch, 99u);
  ASSERT_EQ(admit(ControlFrame::reset(offending, ResetReason::unknown_session).bytes(), view), Refusal::none);
  ASSERT_EQ(admit(ControlFrame::reset(offending, ResetReason::foreign_source).bytes(), view), Refusal::none);
  constexpr std::uint64_t kChallenge = 0x0123456789ABCDEF;
  FrameView asked;
  ASSERT_EQ(admit(ControlFrame::keep_alive(0xFEED, kChallenge).bytes(), asked), Refusal::none);
  EXPECT_EQ(asked.kind, FrameKind::keep_alive);
  EXPECT_EQ(asked.sequence.value, 0xFEEDu);
  EXPECT_EQ(asked.challenge(), kChallenge);
  EXPECT_EQ(asked.session, 0u);
  ASSERT_EQ(admit(ControlFrame::keep_alive(0xFEED, kChallenge, 0xBEEF).bytes(), asked), Refusal::none);
  EXPECT_EQ(asked.session, 0xBEEFu);
  ASSERT_EQ(admit(ControlFrame::alive(asked).bytes(), view), Refusal::none);
  EXPECT_EQ(view.kind, FrameKind::alive);
  EXPECT_EQ(view.sequence.value, 0xFEEDu);
  EXPECT_EQ(view.challenge(), kChallenge);
  EXPECT_EQ(view.session, 0xFEEDu);
  ASSERT_EQ(admit(ControlFrame::path_response(asked).bytes(), view), Refusal::none);
  EXPECT_EQ(view.kind, FrameKind::path_response);
  EXPECT_EQ(view.challenge(), kChallenge);
  EXPECT_EQ(view.sequence.value, 0xFEEDu);
  EXPECT_EQ(view.session, 0xFEEDu);
}

TEST(Control, QuestionsAboutSiblingsCarryOneAddress) {
  const std::byte ip[4] = {std::byte{10}, std::byte{0}, std::byte{0}, std::byte{1}};
  const SocketAddress caller = SocketAddress::v4(ip, 5000);
  constexpr std::uint64_t kChallenge = 0x0123456789ABCDEF;
  const ControlFrame request = ControlFrame::sibling_request(0xFEED, kChallenge, rail_block(caller));
  FrameView asked;
  ASSERT_EQ(admit(request.bytes(), asked), Refusal::none);
  const ControlFrame response = ControlFrame::sibling_response(asked);
  FrameView view;
  ASSERT_EQ(admit(response.bytes(), view), Refusal::none);
  EXPECT_EQ(view.kind, FrameKind::sibling_response);
  EXPECT_EQ(view.sequence.value, 0xFEEDu);
  EXPECT_EQ(view.challenge(), kChallenge);
  EXPECT_EQ(read_rails(view.rails), std::vector{caller});
  for (const FrameKind kind : {FrameKind::sibling_request, FrameKind::sibling_response}) {
    const auto refused = [kind](const Page& behind) {
      FrameView unused;
      return admit_exactly(sign(header_of(kind, 0), behind), unused);
    };
    Page block(request.bytes().begin() + sizeof(FrameHeader), request.bytes().end());
    EXPECT_EQ(refused(block), Refusal::none);
    EXPECT_EQ(refused(Page(block.begin(), block.end() - 1)), Refusal::malformed);
    EXPECT_EQ(refused({}), Refusal::malformed);
    block[0] = std::byte{5};  // of no known family
    EXPECT_EQ(refused(block), Refusal::malformed);
    block[0] = std::byte{4};
    block.push_back(std::byte{0});
    EXPECT_EQ(refused(block), Refusal::malformed);
  }
}

TEST(Print, SaysWhatIsInAFrame) {
  FrameView view;
  const Page page = full_frame();
  ASSERT_EQ(admit(page, view), Refusal::none);
  EXPECT_EQ(print(view),
            "flow to 0xabcd seq 17 tx 19 ack 4 largest_acked 3 age 7168 ns ordered ack-now"
            " [opening 10.0.0.1:5000 epoch 0x4d session 0x9 frame 1472 window 512]"
            " [has 6-8 11-11 spurious 2] 1 segment");
  ASSERT_EQ(admit(ControlFrame::keep_alive(7, 0).bytes(), view), Refusal::none);
  EXPECT_EQ(print(view), "keep_alive nonce 7");
  Segment segment;
  segment.flags = segment_flag::kTagged;
  segment.length = 8;
  segment.tag = 255;
  EXPECT_EQ(print(segment), "eager length 8 tag 0xff");
}

}  // namespace
}  // namespace cluster::wire
