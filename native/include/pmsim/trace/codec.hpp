#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "pmsim/memory/micro_op.hpp"
#include "pmsim/memory/stream.hpp"
#include "pmsim/trace/bytes.hpp"

namespace pmsim::trace {

using memory::MicroOp;

/// Where an address is counted from, and whether the difference is part of the symbol or follows in the column
/// of differences. The values are part of the format.
enum class AddressMode : std::uint8_t {
  kFixedFromLast = 0,  ///< a constant after the thread's last address in the same medium
  kFixedFromSelf = 1,  ///< a constant after the last address of the same shape
  kFromLast = 2,       ///< as the first, the difference follows
  kFromSelf = 3,
  kLinesFromLast = 4,  ///< the difference follows in units of 64 bytes
  kLinesFromSelf = 5,
};
inline constexpr std::uint8_t kAddressModes = 6;

/// Everything of a micro-operation but its address.
struct Shape {
  std::uint32_t bytes;
  memory::OpKind kind;
  std::uint8_t flags;
  std::uint16_t site;
  std::uint8_t window;  ///< medium window of the address, 0 outside of all
  bool operator==(const Shape&) const = default;
};

/// What encoder and decoder know alike, and forget at the end of a chunk: reference addresses, symbols, and
/// which symbol followed the latest four.
class CodecState {
 public:
  struct Symbol {
    std::uint32_t shape;
    AddressMode mode;
    std::uint64_t difference;  ///< of the fixed modes
    bool operator==(const Symbol&) const = default;
  };
  struct ShapeState {
    Shape shape;
    std::uint64_t last_address = 0;
  };
  static constexpr std::uint32_t kNoSymbol = ~std::uint32_t{0};

  [[nodiscard]] std::uint32_t predicted() const noexcept { return successor_[context_]; }
  [[nodiscard]] std::uint64_t reference(const Symbol& symbol) const noexcept;
  /// After each micro-operation, coded as symbol number `id`.
  void advance(std::uint32_t id, std::uint64_t address) noexcept;
  void reset();

  std::vector<ShapeState> shapes;
  std::vector<Symbol> symbols;

 private:
  static constexpr std::size_t kContexts = 4096;
  std::array<std::uint64_t, 4> last_{};  ///< per medium window
  std::array<std::uint32_t, kContexts> successor_ = [] {
    std::array<std::uint32_t, kContexts> none{};
    none.fill(kNoSymbol);
    return none;
  }();
  std::uint32_t context_ = 0;
};

/// One encoded chunk: the column of symbols and the column of address differences.
struct EncodedChunk {
  ByteWriter symbols;
  ByteWriter differences;
};

class Encoder {
 public:
  void encode(std::span<const MicroOp> ops, EncodedChunk& chunk);

 private:
  struct ShapeHash {
    std::size_t operator()(const Shape& shape) const noexcept;
  };
  struct SymbolHash {
    std::size_t operator()(const CodecState::Symbol& symbol) const noexcept;
  };
  /// Differences of the shape's latest micro-operation: one that repeats becomes a symbol of its own.
  struct Recent {
    std::uint64_t from_last = 0;
    std::uint64_t from_self = 0;
    bool any = false;
    bool has_fixed = false;
  };

  [[nodiscard]] bool codes(std::uint32_t id, const Shape& shape, std::uint64_t address) const noexcept;
  CodecState::Symbol choose(std::uint32_t shape, std::uint64_t address);

  CodecState state_;
  std::unordered_map<Shape, std::uint32_t, ShapeHash> shape_ids_;  // looked up only, never iterated
  std::unordered_map<CodecState::Symbol, std::uint32_t, SymbolHash> symbol_ids_;
  std::vector<Recent> recent_;
};

class Decoder {
 public:
  /// Appends `count` micro-operations to `stream`. Throws Malformed when the columns do not hold exactly those.
  void decode(std::span<const std::byte> symbols, std::span<const std::byte> differences, std::uint32_t count,
              memory::Stream& stream);

 private:
  CodecState state_;
};

}  // namespace pmsim::trace
