/**
 * Bookmarks with realistic texts, always the same for a seed. They resemble 5,312 bookmarks of four public lists of
 * software, but contain none of their texts. `FITTED` in test/texts.test.ts has the statistics of these lists.
 */

export interface SampleText {
  url: string;
  title: string;
  comment: string;
  tags: string[];
}

type Random = () => number;

/** Returns a generator of random numbers from 0 up to 1 (mulberry32). Neighbouring seeds give unrelated numbers. */
export function makeRandom(seed: number): Random {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * The weights of the letters a to z. The first group is for the first letter of a word. The next groups are for the
 * letter after an a, after a b, and so on. Each digit is the square root of a weight, in base 36.
 */
const LETTERS = `
  rmxqnnqilcblrgju8ozqfei787
  4ipi59h3h3atiu3j2tnzcb75c6 uc98s676s83z74w85ni9p635b3 q495p33sg2mh63z73ibog32382 ld6bz794s34b96j62dg5f54382
  hbilc895634hfq7b5zsi5a8e63 n244pk43z24n74r52jbek044f2 i474v4cfn20d7czb2od7g44462 w666z344r229a7t74f6jd442a0
  cakdebd1316hfzmc3bhl4c372b p053r030i00070o785z0h3e003 i688z776q34b79e409n8c56370 r66bz763y26n73q724fee534j2
  zd77x462p43be5no62e6f32380 k5kmpbz4k5976bg634pvab2393 bbhg49d3a5aikzfh2thgibe953 w7aaz68jp24u86ti3xhki443h0
  04350330500q33060a79z04300 u5cdz894p2c8eaq83bkhda42e1 e4h6t65jo2aba7hha4kzf473b0 m5b5x64hz23973m92nidd264d3
  jlkil8f2m35tnx6n0zxy764a06 j253z332o10541a30343530140 y768z67ix26b5gq60jm7603540 d6gar683p86cd0cv356z6063i4
  meffldf6j56kksnz6cur74e53a p500z400n33734g404509333ad`
  .trim()
  .split(/\s+/)
  .map((row) => accumulate([...row].map((digit) => Number.parseInt(digit, 36) ** 2)));

/** The number of common words. The rarer words, whose ranks are higher, are used for names. */
const COMMON_WORDS = 14_000;

/**
 * The weights of the common words, by the law of Zipf and Mandelbrot: the frequency of the nth commonest word is
 * proportional to 1 / (n + 1.3). The index is n - 1.
 */
const WORDS = accumulate(Array.from({ length: COMMON_WORDS }, (_, n) => 1 / (n + 2.3)));

/** Alphabets that replace the letters a to z in the few texts in another script. */
const SCRIPTS = [
  'абцдефгхийклмнопярстувшыжз',
  'αβχδεφγηιξκλμνοπψρστυωςζθέ',
  'ابتثجحخدذرزسشصضطظعغفقكلمنه',
  'あいうえおかきくけこさしすせそたちつてとなにぬねの',
  '数据中文网站服务器开源工具学习编程语言新闻图书馆信息',
  'ãbçdéfgñîjklmñöpqršťüvwxýž',
].map((letters) => [...letters]);

const HEADINGS = 342;
const DOMAINS = ['com', 'org', 'io', 'dev', 'app', 'net', 'eu', 'de'];
const DOMAIN_WEIGHTS = accumulate([447, 337, 216, 50, 50, 50, 11, 11]);

function accumulate(weights: readonly number[]): Float64Array {
  let sum = 0;
  return Float64Array.from(weights, (weight) => (sum += weight));
}

/** Chooses a random index with a probability in proportion to its weight. `sums` has the accumulated weights. */
function chooseIndex(random: Random, sums: Float64Array): number {
  const wanted = random() * sums.at(-1)!;
  let [low, high] = [0, sums.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sums[middle]! > wanted) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Draws a number from the normal distribution with mean 0 and standard deviation 1. */
const drawNormal = (random: Random): number =>
  Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

/** Draws the length of a word. The commonest words are short. */
function wordLength(random: Random, rank: number): number {
  if (rank < 20) return 1 + Math.floor(random() * 4);
  const mean = rank < 300 ? 5.5 : 7;
  return Math.min(18, Math.max(2, Math.round(mean + 2.5 * drawNormal(random))));
}

/** Returns the word of a rank. The same rank always has the same word. */
function makeWord(rank: number): string {
  const random = makeRandom(rank);
  let word = '';
  let row = 0;
  for (let left = wordLength(random, rank); left > 0; left -= 1) {
    const letter = chooseIndex(random, LETTERS[row]!);
    word += String.fromCharCode(97 + letter);
    row = letter + 1;
  }
  return word;
}

const capitalize = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

/** Returns a function that makes a new bookmark at each call. The sequence depends only on the seed. */
export function makeTexts(seed: number): () => SampleText {
  const random = makeRandom(seed);
  const known = new Map<number, string>();
  const common = (): string => {
    const rank = chooseIndex(random, WORDS);
    const word = known.get(rank) ?? makeWord(rank);
    known.set(rank, word);
    return word;
  };
  const name = (): string => {
    const kind = random();
    if (kind < 0.4) return makeWord(COMMON_WORDS + Math.floor(random() * 2 ** 30));
    return kind < 0.75 ? common() : `${common()}${random() < 0.5 ? '-' : ''}${common()}`;
  };
  /** Draws the number of a heading. Low numbers are more frequent. */
  const heading = (): number => Math.floor(HEADINGS ** random()) - 1;
  const host = (): string =>
    `${random() < 0.3 ? 'www.' : ''}${name()}.${DOMAINS[chooseIndex(random, DOMAIN_WEIGHTS)]}`;
  const url = (title: string): string => {
    if (random() < 0.747) return `https://github.com/${name()}${random() < 0.2 ? name() : ''}/${title}`;
    const path = random() < 0.7 ? '' : `/${name()}${random() < 0.4 ? `/${name()}-${common()}` : ''}`;
    return `https://${host()}${path}`;
  };
  const comment = (): string => {
    if (random() < 0.03) return '';
    const words = Array.from({ length: Math.round(10.6 * Math.exp(0.58 * drawNormal(random))) }, common);
    return `${capitalize(words.join(' '))}${random() < 0.73 ? '.' : ''}`;
  };
  const tags = (): string[] => {
    const list = `List ${Math.floor(4 * random())}`;
    return random() < 0.36 ? [list, `Heading ${heading()}`] : [list, 'Software', `Heading ${heading()}`];
  };
  return () => {
    const title = `${name()}${random() < 0.1 ? ` ${common()} ${common()}` : ''}`;
    const text = {
      url: url(title.replaceAll(' ', '-')),
      title: random() < 0.4 ? capitalize(title) : title,
      comment: comment(),
    };
    return {
      ...(random() < 0.02 ? transcribe(text, SCRIPTS[Math.floor(random() * 6)]!) : text),
      tags: tags(),
    };
  };
}

type Texts = Omit<SampleText, 'tags'>;

/** Writes the title and the comment in another alphabet. */
function transcribe({ url, title, comment }: Texts, alphabet: readonly string[]): Texts {
  const inScript = (text: string) =>
    text.toLowerCase().replace(/[a-z]/g, (letter) => alphabet[letter.charCodeAt(0) - 97] ?? letter);
  return { url, title: inScript(title), comment: inScript(comment) };
}
