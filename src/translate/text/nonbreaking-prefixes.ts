/**
 * Abbreviations after which a full stop belongs to the word. `always` holds in front of any word, `beforeNumber`
 * only in front of a digit ("No. 5", but "No. I do not"). Languages without a list use the English one, as the Moses
 * scripts do.
 */
export interface NonbreakingPrefixes {
  readonly always: ReadonlySet<string>;
  readonly beforeNumber: ReadonlySet<string>;
}

export function nonbreakingPrefixes(language: string): NonbreakingPrefixes {
  return lists.get(language) ?? english;
}

function words(text: string): string[] {
  return text.trim().split(/\s+/);
}

const capitals = words('A B C D E F G H I J K L M N O P Q R S T U V W X Y Z');

const titles = words(`
  Adj Adm Adv Asst Bart Bldg Brig Bros Capt Cmdr Col Comdr Con Corp Cpl DR Dr Ens Gen Gov Hon Hosp Insp Lt MM MR MRS
  MS Maj Messrs Mlle Mme Mr Mrs Ms Msgr Op Ord Pfc Ph Prof Pvt Rep Reps Res Rev Rt Sen Sens Sfc Sgt Sr St Supt Surg`);

const english: NonbreakingPrefixes = {
  always: new Set([
    ...capitals,
    ...titles,
    ...words('Drs Hr v vs i.e rev e.g Rs Nos Nr Jan Feb Mar Apr Jun Jul Aug Sep Oct Nov Dec'),
  ]),
  beforeNumber: new Set(['No', 'Art', 'pp']),
};

const roman = words('I II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI XVII XVIII XIX XX');

// German writes ordinals with a full stop ("am 3. Mai"), hence the numbers.
const german: NonbreakingPrefixes = {
  always: new Set([
    ...capitals,
    ...capitals.map((letter) => letter.toLowerCase()),
    ...roman,
    ...roman.map((numeral) => numeral.toLowerCase()),
    ...titles,
    ...words(`
      Mio Mrd bzw v vs usw d.h z.B u.a etc MwSt ggf d.J D.h m.E vgl I.F z.T sogen ff u.E g.U g.g.A c.-à-d Buchst u.s.w
      sog u.ä Std evtl Zt Chr u.U o.ä Ltd b.A z.Zt spp sen SA k.o jun i.H.v dgl dergl Co zzt usf s.p.a Dkr bzgl BSE
      No Nos Art Nr pp ca Ca`),
    ...Array.from({ length: 99 }, (_, i) => String(i + 1)),
  ]),
  beforeNumber: new Set(),
};

const lists = new Map([
  ['en', english],
  ['de', german],
]);
