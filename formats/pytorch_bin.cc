// This file defines the container of PyTorch: pytorch_model.bin and other files of torch.save, which are zip files. The
// entry data.pkl is a pickle that describes the tensors, and data/0, data/1, ... are their bytes. A pickle is a program
// for a stack machine, and Python's own reader calls any function that the pickle names. Here a machine that can call
// nothing reads it: it has the instructions that torch.save writes, and knows the names of kNames only as words.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "weft/base/arena.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/base/zip.h"
#include "weft/core/safetensors.h"
#include "weft/formats/all_containers.h"
#include "weft/formats/weight_files.h"

namespace weft {
namespace {

using Bytes = absl::string_view;
enum class Kind : uint8_t { kNone, kNumber, kText, kTuple, kList, kDict, kName, kStorage, kTensor };

// A value of the pickle. Values refer to others by index, so that many may share one.
struct Value {
  Kind kind = Kind::kNone;
  int64_t number = 0;                // of a kNumber, if it is whole; of kStorage and kTensor: the tuple of arguments
  Bytes text = {};                   // of kText; of kName and kTensor: one of kNames, kStorages or kUnread
  std::vector<uint32_t> items = {};  // of a kTuple; of a kDict: key, value, key, value, ...
};

// The names that a pickle of tensors has, as it spells them: module and name in lines of their own.
constexpr Bytes kOrderedDict = "collections\nOrderedDict", kParameter = "torch._utils\n_rebuild_parameter",
                kTensor = "torch._utils\n_rebuild_tensor_v2", kNewTensor = "torch._utils\n_rebuild_tensor_v3";
constexpr Bytes kNames[] = {kOrderedDict, kParameter, kTensor, kNewTensor};
// The kinds of storages, and the dtypes of their elements in safetensors.
constexpr std::pair<Bytes, Bytes> kStorages[] = {
    {"torch\nFloatStorage", "F32"},     {"torch\nDoubleStorage", "F64"},      {"torch\nHalfStorage", "F16"},
    {"torch\nBFloat16Storage", "BF16"}, {"torch\nLongStorage", "I64"},        {"torch\nIntStorage", "I32"},
    {"torch\nShortStorage", "I16"},     {"torch\nCharStorage", "I8"},         {"torch\nByteStorage", "U8"},
    {"torch\nBoolStorage", "BOOL"},     {"torch\nComplexFloatStorage", "C64"}};
// Names of tensors without a storage of their dtype. No kernel computes with them, so they are not read.
constexpr Bytes kUnread[] = {"torch.storage\nUntypedStorage", "torch\nuint16",     "torch\nuint32", "torch\nuint64",
                             "torch\nfloat8_e4m3fn",          "torch\nfloat8_e5m2"};

std::string Dotted(Bytes name) { return absl::StrReplaceAll(name, {{"\n", "."}}); }

// Runs a pickle of protocol 2 (https://docs.python.org/3/library/pickletools.html). The first error stops it.
class Machine {
 public:
  explicit Machine(Bytes pickle) : left_(pickle) {}
  // Returns the result of the pickle, an index into values().
  absl::StatusOr<uint32_t> Run();
  const std::vector<Value>& values() const { return values_; }

 private:
  struct Instruction;
  static const Instruction kInstructions[];

  void PushName();
  void Call();
  void Fail(absl::string_view does) {
    if (status_.ok()) status_ = InvalidArgument("its pickle ", does);
  }
  void Push(Value value) {
    stack_.push_back(static_cast<uint32_t>(values_.size()));
    values_.push_back(std::move(value));
  }
  void PushNumber(int64_t number) { Push({.kind = Kind::kNumber, .number = number}); }
  void PushTuple(std::vector<uint32_t> items) { Push({.kind = Kind::kTuple, .items = std::move(items)}); }
  void Store(int64_t key) { memo_[key] = stack_.emplace_back(Pop()); }
  void Load(int64_t key) {
    const auto found = memo_.find(key);
    found != memo_.end() ? stack_.push_back(found->second) : Fail("loads a value that it has not stored");
  }
  uint32_t Pop() { return Take(1)[0]; }
  Value& Top() { return values_[stack_.emplace_back(Pop())]; }
  // Removes values from the stack, and returns them; values that are missing are None.
  std::vector<uint32_t> Take(size_t count) {
    const size_t there = stack_.size() - (marks_.empty() ? 0 : marks_.back());
    if (count > there) Fail("takes a value that is not there");
    std::vector<uint32_t> items(count, 0);
    std::copy_n(stack_.end() - static_cast<int64_t>(std::min(count, there)), std::min(count, there), items.begin());
    stack_.resize(stack_.size() - std::min(count, there));
    return items;
  }
  std::vector<uint32_t> TakeFromMark() {
    if (marks_.empty()) Fail("has no mark");
    std::vector<uint32_t> items = Take(stack_.size() - (marks_.empty() ? 0 : marks_.back()));
    if (!marks_.empty()) marks_.pop_back();
    return items;
  }
  void AddItems(Kind kind, const std::vector<uint32_t>& items) {
    Value& to = Top();
    if (to.kind != kind || (kind == Kind::kDict && items.size() % 2 != 0)) return Fail("adds items to another value");
    if (kind == Kind::kDict) to.items.insert(to.items.end(), items.begin(), items.end());
  }
  Bytes Next(uint64_t size) {
    if (size > left_.size()) Fail("ends too early");
    const Bytes next = left_.substr(0, size);
    left_.remove_prefix(next.size());
    return next;
  }
  // Reads a number. Larger ones than 64 bits lose their upper bits. `is_signed`: whether its last bit is the sign.
  int64_t Number(uint64_t bytes, bool is_signed = false) {
    const Bytes text = Next(bytes);
    uint64_t number = is_signed && !text.empty() && static_cast<int8_t>(text.back()) < 0 ? ~uint64_t{0} : 0;
    for (size_t i = text.size(); i-- > 0;) number = number << 8 | static_cast<uint8_t>(text[i]);
    return static_cast<int64_t>(number);
  }

  Bytes left_;
  std::vector<Value> values_ = std::vector<Value>(1);  // the first is None
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;  // sizes of the stack
  absl::flat_hash_map<int64_t, uint32_t> memo_;
  absl::Status status_;
};

// The instructions that torch.save writes.
struct Machine::Instruction {
  char code;
  void (*run)(Machine& m);
};
constexpr Machine::Instruction Machine::kInstructions[] = {
    {'N', [](Machine& m) { m.Push({}); }},
    {'G', [](Machine& m) { m.Next(8), m.Push({}); }},  // a fraction, which no tensor needs
    {'\x88', [](Machine& m) { m.PushNumber(1); }},
    {'\x89', [](Machine& m) { m.PushNumber(0); }},
    {'K', [](Machine& m) { m.PushNumber(m.Number(1)); }},
    {'M', [](Machine& m) { m.PushNumber(m.Number(2)); }},
    {'J', [](Machine& m) { m.PushNumber(m.Number(4, /*is_signed=*/true)); }},
    {'\x8a', [](Machine& m) { m.PushNumber(m.Number(m.Number(1), /*is_signed=*/true)); }},
    {'X', [](Machine& m) { m.Push({.kind = Kind::kText, .text = m.Next(m.Number(4))}); }},
    {')', [](Machine& m) { m.PushTuple({}); }},
    {'t', [](Machine& m) { m.PushTuple(m.TakeFromMark()); }},
    {'\x85', [](Machine& m) { m.PushTuple(m.Take(1)); }},
    {'\x86', [](Machine& m) { m.PushTuple(m.Take(2)); }},
    {'\x87', [](Machine& m) { m.PushTuple(m.Take(3)); }},
    {'(', [](Machine& m) { m.marks_.push_back(m.stack_.size()); }},
    {']', [](Machine& m) { m.Push({.kind = Kind::kList}); }},
    {'a', [](Machine& m) { m.AddItems(Kind::kList, m.Take(1)); }},
    {'e', [](Machine& m) { m.AddItems(Kind::kList, m.TakeFromMark()); }},
    {'}', [](Machine& m) { m.Push({.kind = Kind::kDict}); }},
    {'s', [](Machine& m) { m.AddItems(Kind::kDict, m.Take(2)); }},
    {'u', [](Machine& m) { m.AddItems(Kind::kDict, m.TakeFromMark()); }},
    {'q', [](Machine& m) { m.Store(m.Number(1)); }},
    {'r', [](Machine& m) { m.Store(m.Number(4)); }},
    {'h', [](Machine& m) { m.Load(m.Number(1)); }},
    {'j', [](Machine& m) { m.Load(m.Number(4)); }},
    {'c', [](Machine& m) { m.PushName(); }},
    {'R', [](Machine& m) { m.Call(); }},
    {'Q', [](Machine& m) { m.Push({.kind = Kind::kStorage, .number = m.Pop()}); }},
    // Drops the state of a dictionary: the versions of a model's modules.
    {'b', [](Machine& m) { m.Pop(), m.Top().kind == Kind::kDict ? void() : m.Fail("builds an object"); }},
};

absl::StatusOr<uint32_t> Machine::Run() {
  if (Next(2) != "\x80\x02") Fail("is not of protocol 2");
  while (status_.ok()) {
    const Bytes code = Next(1);
    if (code == ".") break;
    const auto has_code = [&](const Instruction& each) { return !code.empty() && each.code == code[0]; };
    const auto found = absl::c_find_if(kInstructions, has_code);
    if (found == std::end(kInstructions)) Fail("ends too early, or has an instruction that torch.save does not write");
    if (status_.ok()) found->run(*this);
  }
  const uint32_t result = Pop();
  return status_.ok() ? absl::StatusOr<uint32_t>(result) : status_;
}

// Reads a module and a name, each with an end of line.
void Machine::PushName() {
  const size_t end = left_.find('\n', std::min(left_.size(), left_.find('\n')) + 1);
  const Bytes name = Next(std::min(left_.size(), end));
  Next(1);
  const bool known = absl::c_linear_search(kNames, name) || absl::c_linear_search(kUnread, name) ||
                     absl::c_any_of(kStorages, [&](const auto& each) { return each.first == name; });
  if (!known) Fail(absl::StrCat("names '", Dotted(name), "', which no tensor needs; nothing is called"));
  Push({.kind = Kind::kName, .text = name});
}

// Replaces a name and its arguments on the stack by the result that the function would have.
void Machine::Call() {
  const uint32_t arguments = Pop();
  const Bytes name = values_[Pop()].text;
  const std::vector<uint32_t>& given = values_[arguments].items;
  if (name == kOrderedDict && given.empty()) return Push({.kind = Kind::kDict});
  if (name == kParameter && !given.empty()) return stack_.push_back(given[0]);
  if (name != kTensor && name != kNewTensor) return Fail(absl::StrCat("calls '", Dotted(name), "'"));
  Push({.kind = Kind::kTensor, .number = arguments, .text = name});
}

constexpr Bytes kWrappers[] = {"state_dict", "model"};  // keys with the tensors, if the file has more than them
constexpr uint64_t kMaxPickle = 16'000'000;             // bytes: 100,000 tensors take about 10 MB
// The copied tensors take at most 4 times the bytes of the file: a tied table may be copied several times.
constexpr uint64_t kMaxCopies = 4;

class PyTorchFile : public TensorFile {
 public:
  static absl::StatusOr<PyTorchFile> Open(const std::string& path);

 private:
  // Item `i` of a tuple, or None.
  const Value& Item(const Value& tuple, size_t i) const { return values_[i < tuple.items.size() ? tuple.items[i] : 0]; }
  absl::Status Read();
  absl::Status Add(const std::string& name, const Value& tensor);
  absl::StatusOr<std::vector<int64_t>> Sizes(const Value& tuple) const;
  absl::StatusOr<Tensor> Copy(Bytes from, size_t size, absl::Span<const int64_t> strides, const OtherDType* other,
                              const TensorType& type);

  ZipFile entries_;
  Bytes folder_;  // the beginning of the entries' names
  std::vector<Value> values_;
  uint64_t copied_ = 0;  // bytes
};

absl::StatusOr<std::vector<int64_t>> PyTorchFile::Sizes(const Value& tuple) const {
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < std::min<size_t>(tuple.items.size(), Shape::kMaxRank + 1); ++i) {
    sizes.push_back(Item(tuple, i).kind == Kind::kNumber ? Item(tuple, i).number : -1);
  }
  const bool fits = tuple.kind == Kind::kTuple && sizes.size() <= Shape::kMaxRank;
  if (fits && absl::c_all_of(sizes, [](int64_t size) { return size >= 0; })) return sizes;
  return InvalidArgument("its shape or strides are not at most ", Shape::kMaxRank, " natural numbers");
}

// Copies a tensor whose elements of `size` bytes are in `from` with these strides.
absl::StatusOr<Tensor> PyTorchFile::Copy(Bytes from, size_t size, absl::Span<const int64_t> strides,
                                         const OtherDType* other, const TensorType& type) {
  copied_ += type.bytes();
  if (copied_ > kMaxCopies * mapped_.bytes().size()) return InvalidArgument("too many tensors share bytes");
  const Tensor tensor = {type, arena_.Allocate(type.bytes())};
  if (tensor.data == nullptr) return absl::ResourceExhaustedError("no memory for its tensors");
  std::string elements;
  for (int64_t i = 0; i < type.shape.elements(); ++i) {
    int64_t at = 0, left = i;
    for (int axis = type.shape.rank(); axis-- > 0; left /= type.shape.dim(axis)) {
      at += left % type.shape.dim(axis) * strides[static_cast<size_t>(axis)];
    }
    elements.append(from.data() + static_cast<size_t>(at) * size, size);
  }
  WEFT_RETURN_IF_ERROR(CopyStored(elements, other, tensor));
  return tensor;
}

absl::Status PyTorchFile::Add(const std::string& name, const Value& tensor) {
  const auto unread = [&](const std::string& type) {
    unread_.emplace_back(name, type);
    return absl::OkStatus();
  };
  if (tensor.kind != Kind::kTensor) return unread("no tensor");
  // The storage, the first element, sizes, strides, and two values for training. Then kNewTensor has the dtype.
  const Value& arguments = values_[static_cast<size_t>(tensor.number)];
  WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, Sizes(Item(arguments, 2)));
  WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, Sizes(Item(arguments, 3)));
  const Shape shape{absl::MakeConstSpan(sizes)};
  if (!shape.valid() || strides.size() != sizes.size()) return InvalidArgument("its shape is too large");
  if (tensor.text == kNewTensor) return unread(absl::StrCat(Dotted(Item(arguments, 6).text), ToString(shape)));
  if (!Item(arguments, 6).items.empty()) return InvalidArgument("it is a view that negates or conjugates");
  // The word "storage", the kind, the name of the entry, the device, and the number of elements.
  if (Item(arguments, 0).kind != Kind::kStorage) return InvalidArgument("its first argument is no storage");
  const Value& storage = values_[static_cast<size_t>(Item(arguments, 0).number)];
  const auto kind = absl::c_find_if(kStorages, [&](const auto& each) { return each.first == Item(storage, 1).text; });
  if (kind == std::end(kStorages)) return InvalidArgument("it has no storage of a kind that is known");
  const OtherDType* const other = FindOtherDType(kind->second);
  if (other != nullptr && !other->read_as) return unread(absl::StrCat(kind->second, ToString(shape)));
  TensorType type = {other != nullptr ? *other->read_as : kF32, shape};
  if (other == nullptr) WEFT_CHECK(ParseDType(absl::AsciiStrToLower(kind->second), &type.dtype));
  const size_t size = other != nullptr ? other->bits / 8 : SizeOf(type.dtype);
  const std::string entry = absl::StrCat(folder_, "data/", Item(storage, 2).text);
  const auto found = entries_.find(entry);
  if (found == entries_.end()) return InvalidArgument("its entry '", entry, "' is missing");
  // The last element must be in the storage. A tensor with more elements than the storage would repeat some.
  const uint64_t count = found->second.size() / size, elements = static_cast<uint64_t>(shape.elements());
  const auto first = static_cast<uint64_t>(Item(arguments, 1).number);
  bool inside = elements <= count && first <= count - elements, contiguous = true;
  int64_t usual = 1;
  for (uint64_t i = sizes.size(), last = first; i-- > 0 && elements > 0 && inside; usual *= sizes[i]) {
    const auto steps = static_cast<uint64_t>(sizes[i] - 1), stride = static_cast<uint64_t>(strides[i]);
    contiguous = contiguous && (steps == 0 || strides[i] == usual);
    inside = steps == 0 || stride <= (count - 1 - last) / steps;
    last += steps * stride;
  }
  if (!inside) return InvalidArgument("its elements are not in '", entry, "', which has ", count);
  Bytes from = found->second.substr(first * size);
  if (contiguous) from = from.substr(0, elements * size);
  if (contiguous && IsUsableInPlace(from, other, type.dtype)) {
    WEFT_ASSIGN_OR_RETURN(const Tensor in_place, Place(type, from, other));
    tensors_.push_back({name, in_place});
    return absl::OkStatus();
  }
  WEFT_ASSIGN_OR_RETURN(const Tensor copy, Copy(from, size, strides, other, type));
  tensors_.push_back({name, copy});
  return absl::OkStatus();
}

absl::Status PyTorchFile::Read() {
  if (!absl::StartsWith(mapped_.bytes(), "PK")) {
    return InvalidArgument(
        "it is no zip file. Before version 1.6, torch.save wrote pickles, which are not read; in Python, "
        "torch.save(torch.load(FILE), FILE) writes a zip file");
  }
  WEFT_ASSIGN_OR_RETURN(entries_, ReadZip(mapped_.bytes()));
  const auto pickle =
      absl::c_find_if(entries_, [](const auto& each) { return absl::EndsWith(each.first, "/data.pkl"); });
  if (pickle == entries_.end()) return InvalidArgument("it has no entry data.pkl, as files of torch.save have");
  folder_ = absl::StripSuffix(pickle->first, "data.pkl");
  const auto order = entries_.find(absl::StrCat(folder_, "byteorder"));
  if (order != entries_.end() && order->second != "little") return InvalidArgument("its byteorder is not little");
  if (pickle->second.size() > kMaxPickle) return InvalidArgument("its pickle has over ", kMaxPickle, " bytes");
  Machine machine(pickle->second);
  WEFT_ASSIGN_OR_RETURN(const uint32_t result, machine.Run());
  values_ = machine.values();
  const Value* state = &values_[result];
  for (size_t i = 0; i + 1 < values_[result].items.size(); i += 2) {
    const Value& value = Item(values_[result], i + 1);
    const bool wrapped = absl::c_linear_search(kWrappers, Item(values_[result], i).text);
    if (wrapped && value.kind == Kind::kDict) state = &value;
  }
  if (state->kind != Kind::kDict) return InvalidArgument("its pickle is no dictionary of tensors");
  for (size_t i = 0; i < state->items.size(); i += 2) {
    if (Item(*state, i).kind != Kind::kText) return InvalidArgument("the name of a tensor is no text");
    const std::string name(Item(*state, i).text);
    WEFT_RETURN_IF_ERROR(Annotate(Add(name, Item(*state, i + 1)), absl::StrCat("tensor '", name, "'")));
  }
  return absl::OkStatus();
}

absl::StatusOr<PyTorchFile> PyTorchFile::Open(const std::string& path) {
  PyTorchFile file;
  WEFT_ASSIGN_OR_RETURN(file.mapped_, MappedFile::Open(path));
  WEFT_RETURN_IF_ERROR(Annotate(file.Read(), absl::StrCat(path, ": it is no PyTorch file that is read")));
  file.values_ = {};  // only reading needs them
  file.entries_ = {};
  return file;
}

}  // namespace

constexpr Container kPyTorch = {
    .what = "a PyTorch file",
    .beginnings = {"PK\x03\x04", "\x80\x02\x8a\x0a", "\x80\x02}", "\x80\x04\x95"},
    .endings = {".bin", ".pt", ".pth", ".ckpt"},
    .advice = "Wanted its folder, with config.json",
    .weights_file = "pytorch_model.bin",
    .open = [](const std::string& path, WantedChecksum) { return Shared(PyTorchFile::Open(path)); },
};

}  // namespace weft
